// Memory of graphs and of pools: who may free it and how often, when a graph may be launched or instantiated again, and
// that it comes back.
#include <atomic>
#include <cstring>

#include "tests/interpose/fixture.h"

using namespace gridloom;

namespace {

CUDA_MEM_ALLOC_NODE_PARAMS AllocParams(std::size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool_props.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.pool_props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytes = bytes;
  return params;
}

/// A graph that allocates memory.
struct Allocating {
  explicit Allocating(bool frees = false, std::size_t bytes = 4096) {
    auto params = AllocParams(bytes);
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    pointer = params.pointer;
    CUgraphNode free = nullptr;
    if (frees) CU_OK(cuGraphAddMemFreeNode(&free, graph, &node, 1, pointer));
  }
  ~Allocating() { Destroy(); }
  void Destroy() {
    if (exec != nullptr) CU_OK(cuGraphExecDestroy(exec));
    if (graph != nullptr) CU_OK(cuGraphDestroy(graph));
    exec = nullptr, graph = nullptr;
  }
  void Instantiate(std::uint64_t flags = 0) { CU_OK(cuGraphInstantiateWithFlags(&exec, graph, flags)); }
  CUresult Launch() { return cuGraphLaunch(exec, nullptr); }

  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  CUdeviceptr pointer = 0;
};

std::uint64_t GraphBytes() {
  std::uint64_t bytes = 0;
  CU_OK(cuCtxSynchronize());
  CU_OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes));
  return bytes;
}

std::size_t FreeBytes() {
  std::size_t free = 0, total = 0;
  CU_OK(cuMemGetInfo_v2(&free, &total));
  return free;
}

/// A stream that stands until it is let go.
struct Held {
  Held() {
    CU_OK(cuMemHostAlloc(&flag, 4, 0));
    std::memset(flag, 0, 4);
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  ~Held() {
    Go();
    CU_OK(cuStreamDestroy_v2(stream));
    CU_OK(cuMemFreeHost(flag));
  }
  void Go() {
    static_cast<std::atomic<unsigned>*>(flag)->store(1);
    CU_OK(cuStreamSynchronize(stream));
  }
  CUstream stream = nullptr;
  void* flag = nullptr;
};

}  // namespace

TEST_CASE("GraphMemory_FreedInItsGraph_IsNobodyElses", "[graph_memory]") {
  const test::Fixture fixture;
  Allocating graph(true);
  CUgraphNode node = nullptr;
  CUgraph other = nullptr;
  CU_OK(cuGraphCreate(&other, 0));
  CHECK(cuGraphAddMemFreeNode(&node, graph.graph, nullptr, 0, graph.pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddMemFreeNode(&node, other, nullptr, 0, graph.pointer) == CUDA_ERROR_INVALID_VALUE);
  graph.Instantiate();
  for (int round = 0; round < 3; ++round) {
    CU_OK(graph.Launch());
    CHECK(cuMemFreeAsync(graph.pointer, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFree_v2(graph.pointer) == CUDA_ERROR_INVALID_VALUE);
  }
  CU_OK(cuGraphDestroy(other));
}

TEST_CASE("GraphMemory_LeftByALaunch_IsFreedOnceBeforeTheNext", "[graph_memory]") {
  const test::Fixture fixture;
  Allocating graph;
  CHECK(cuMemFreeAsync(graph.pointer, nullptr) == CUDA_ERROR_INVALID_VALUE);  // no launch has allocated it
  graph.Instantiate();
  CU_OK(graph.Launch());
  CHECK(graph.Launch() == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFreeAsync(graph.pointer, nullptr));
  CHECK(cuMemFreeAsync(graph.pointer, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(graph.Launch());
  CU_OK(cuMemFree_v2(graph.pointer));
  CHECK(cuMemFree_v2(graph.pointer) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(graph.Launch());
  CU_OK(cuMemFree_v2(graph.pointer));
}

TEST_CASE("GraphMemory_AutoFree_LaunchesAgain", "[graph_memory]") {
  const test::Fixture fixture;
  Allocating graph;
  graph.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int round = 0; round < 3; ++round) CU_OK(graph.Launch());
  CU_OK(cuMemFree_v2(graph.pointer));
  CHECK(cuMemFree_v2(graph.pointer) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(graph.Launch());
  CU_OK(cuMemFree_v2(graph.pointer));
}

TEST_CASE("GraphMemory_FreedByAnotherGraph", "[graph_memory]") {
  const test::Fixture fixture;
  Allocating graph;
  CUgraph other = nullptr;
  CUgraphExec frees = nullptr;
  CUgraphNode node = nullptr;
  CU_OK(cuGraphCreate(&other, 0));
  CU_OK(cuGraphAddMemFreeNode(&node, other, nullptr, 0, graph.pointer));
  CHECK(cuGraphAddMemFreeNode(&node, other, nullptr, 0, graph.pointer) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddMemFreeNode(&node, graph.graph, nullptr, 0, graph.pointer) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphInstantiateWithFlags(&frees, other, 0));
  graph.Instantiate();
  CHECK(cuGraphLaunch(frees, nullptr) == CUDA_ERROR_INVALID_VALUE);
  for (int round = 0; round < 3; ++round) {
    CU_OK(graph.Launch());
    CU_OK(cuGraphLaunch(frees, nullptr));
    CHECK(cuGraphLaunch(frees, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFreeAsync(graph.pointer, nullptr) == CUDA_ERROR_INVALID_VALUE);
  }
  // What no allocation node allocates is not a graph's to free.
  CUdeviceptr memory = 0, block = 0;
  CU_OK(cuMemAlloc_v2(&memory, 4096));
  CU_OK(cuMemAllocAsync(&block, 4096, nullptr));
  for (const CUdeviceptr wrong : {memory, block, graph.pointer + 8, CUdeviceptr{1}, CUdeviceptr{0}}) {
    CHECK(cuGraphAddMemFreeNode(&node, other, nullptr, 0, wrong) == CUDA_ERROR_INVALID_VALUE);
  }
  CU_OK(cuMemFree_v2(memory));
  CU_OK(cuMemFree_v2(block));
  CU_OK(cuGraphExecDestroy(frees));
  CU_OK(cuGraphDestroy(other));
}

TEST_CASE("GraphMemory_OneInstanceOneOwner", "[graph_memory]") {
  const test::Fixture fixture;
  Allocating graph(true);
  graph.Instantiate();
  CUgraphExec second = nullptr;
  CHECK(cuGraphInstantiateWithFlags(&second, graph.graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CU_OK(graph.Launch());
  CU_OK(cuGraphExecDestroy(graph.exec));
  CU_OK(cuCtxSynchronize());
  graph.Instantiate();
  CU_OK(graph.Launch());

  CUgraph copy = nullptr, parent = nullptr;
  CUgraphNode node = nullptr;
  CHECK(cuGraphClone(&copy, graph.graph) == CUDA_ERROR_NOT_SUPPORTED);
  CU_OK(cuGraphCreate(&parent, 0));
  CHECK(cuGraphAddChildGraphNode(&node, parent, nullptr, 0, graph.graph) == CUDA_ERROR_NOT_SUPPORTED);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = graph.graph;
  CHECK(cuGraphAddNode(&node, parent, nullptr, 0, &params) == CUDA_ERROR_NOT_SUPPORTED);

  // A graph that is moved into another one brings its memory along.
  Allocating moved;
  params.graph.graph = moved.graph;
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  CU_OK(cuGraphAddNode(&node, parent, nullptr, 0, &params));
  moved.graph = nullptr;
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiateWithFlags(&exec, parent, 0));
  CU_OK(cuGraphLaunch(exec, nullptr));
  CHECK(cuGraphLaunch(exec, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFreeAsync(moved.pointer, nullptr));
  CU_OK(cuGraphLaunch(exec, nullptr));
  CU_OK(cuMemFreeAsync(moved.pointer, nullptr));
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(parent));
}

TEST_CASE("GraphMemory_OutlivesItsGraph_AndComesBack", "[graph_memory]") {
  const test::Fixture fixture;
  const std::uint64_t before = GraphBytes();
  {
    Allocating graph(false, 8192);
    const CUdeviceptr left = graph.pointer;
    graph.Instantiate();
    CU_OK(graph.Launch());
    graph.Destroy();
    CU_OK(cuCtxSynchronize());
    Allocating next(true, 8192);
    CHECK(next.pointer != left);
    CU_OK(cuMemsetD8_v2(left, 1, 8192));
    CU_OK(cuMemFreeAsync(left, nullptr));
    CHECK(cuMemFreeAsync(left, nullptr) != CUDA_SUCCESS);
  }
  CHECK(GraphBytes() == before);
  // In every way it can be freed, or not be used at all.
  for (int round = 0; round < 40; ++round) {
    Allocating graph(round % 4 == 0, std::size_t{512} << (round % 7));
    if (round % 4 == 1) continue;
    graph.Instantiate();
    CU_OK(graph.Launch());
    if (round % 4 == 2) CU_OK(cuMemFreeAsync(graph.pointer, nullptr));
    if (round % 4 == 3) CU_OK(cuMemFree_v2(graph.pointer));
  }
  CHECK(GraphBytes() == before);
}

TEST_CASE("Capture_FreesWhatItAllocated_AndNothingElse", "[graph_memory]") {
  const test::Fixture fixture;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0, block = 0, own = 0;
  CU_OK(cuStreamCreate(&stream, 0));
  CU_OK(cuMemAlloc_v2(&memory, 4096));
  CU_OK(cuMemAllocAsync(&block, 4096, stream));
  CU_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemFreeAsync(memory, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFreeAsync(block, stream) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemAllocAsync(&own, 4096, stream));
  CU_OK(cuMemsetD8Async(own, 1, 4096, stream));
  CU_OK(cuMemFreeAsync(own, stream));
  CHECK(cuMemFreeAsync(own, stream) == CUDA_ERROR_INVALID_VALUE);
  CUgraph graph = nullptr;
  CU_OK(cuStreamEndCapture(stream, &graph));
  std::size_t nodes = 0;
  CU_OK(cuGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 3);
  CUgraphExec exec = nullptr;
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) CU_OK(cuGraphLaunch(exec, stream));
  CU_OK(cuStreamSynchronize(stream));
  // Neither launch nor refusal has freed anything.
  CU_OK(cuMemFreeAsync(block, stream));
  CU_OK(cuMemFree_v2(memory));
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
  CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("FreeAsync_Twice_IsRefusedBeforeTheFirstHasRun", "[graph_memory]") {
  const test::Fixture fixture;
  CUdeviceptr block = 0;
  CU_OK(cuMemAllocAsync(&block, 4096, nullptr));
  {
    Held held;
    CU_OK(cuMemFreeAsync(block, held.stream));
    CHECK(cuMemFreeAsync(block, held.stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFreeAsync(block, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFree_v2(block) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(cuMemFreeAsync(block, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr first = 0, second = 0;
  CU_OK(cuMemAllocAsync(&first, 4096, nullptr));
  CU_OK(cuMemAllocAsync(&second, 4096, nullptr));
  CHECK(first != second);
  CU_OK(cuMemFree_v2(first));
  CU_OK(cuMemFree_v2(second));
}

TEST_CASE("DestroyedPool_MemoryComesBackWithItsLastBlock", "[graph_memory]") {
  const test::Fixture fixture;
  CUmemPoolProps props{};
  props.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const std::size_t before = FreeBytes();
  for (int round = 0; round < 100; ++round) {
    CUmemoryPool pool = nullptr;
    CUdeviceptr blocks[3] = {};
    CU_OK(cuMemPoolCreate(&pool, &props));
    for (CUdeviceptr& block : blocks) CU_OK(cuMemAllocFromPoolAsync(&block, 16u << 20, pool, nullptr));
    CU_OK(cuMemFreeAsync(blocks[0], nullptr));
    CU_OK(cuStreamSynchronize(nullptr));
    CU_OK(cuMemPoolDestroy(pool));
    CHECK(FreeBytes() == before - (32u << 20));
    CUmemoryPool none = pool;
    CU_OK(cuPointerGetAttribute(&none, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, blocks[1]));
    CHECK(none == nullptr);
    CU_OK(cuMemFreeAsync(blocks[1], nullptr));
    CU_OK(cuMemFree_v2(blocks[2]));
    CHECK(FreeBytes() == before);
  }
}

TEST_CASE("Launch_KernelOfAnotherContextsModule_IsRefused", "[graph_memory]") {
  const test::Fixture fixture;
  const CUfunction mine = fixture.Function("nothing");
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CU_OK(cuLibraryLoadData(&library, test::kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CU_OK(cuLibraryGetKernel(&kernel, library, "nothing"));
  CUcontext other = nullptr;
  CUmodule module = nullptr;
  CUfunction others = nullptr;
  CU_OK(cuCtxCreate_v2(&other, 0, 0));
  CU_OK(cuModuleLoadData(&module, test::kPtx));
  CU_OK(cuModuleGetFunction(&others, module, "nothing"));
  const auto launch = [](CUfunction function) {
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  };
  CU_OK(launch(others));
  CU_OK(launch(reinterpret_cast<CUfunction>(kernel)));
  CHECK(launch(mine) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuLaunchCooperativeKernel(mine, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuLaunch(mine) == CUDA_ERROR_INVALID_HANDLE);
  CU_OK(cuCtxSynchronize());
  CU_OK(cuCtxDestroy_v2(other));
  CU_OK(launch(mine));
  CU_OK(launch(reinterpret_cast<CUfunction>(kernel)));
  CU_OK(cuCtxSynchronize());
  CU_OK(cuLibraryUnload(library));
}

TEST_CASE("DestroyedContexts_AreKnownAsThat_AndComeBackAsNew", "[graph_memory]") {
  const test::Fixture fixture;
  std::vector<CUcontext> gone;
  std::uint64_t last_id = 0;
  for (int round = 0; round < 300; ++round) {
    CUcontext context = nullptr;
    CU_OK(cuCtxCreate_v2(&context, CU_CTX_SCHED_SPIN, 0));
    std::uint64_t id = 0;
    unsigned flags = 0;
    CU_OK(cuCtxGetId(context, &id));
    CHECK(id > last_id);
    last_id = id;
    CU_OK(cuCtxGetFlags(&flags));
    CHECK(flags == CU_CTX_SCHED_SPIN);
    CU_OK(cuCtxSetFlags(0));
    CU_OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    CUdeviceptr memory = 0;
    CU_OK(cuMemAlloc_v2(&memory, 4096));
    CU_OK(cuMemsetD8_v2(memory, 1, 4096));
    CU_OK(cuCtxDestroy_v2(context));
    for (std::size_t back = 1; back <= std::min<std::size_t>(gone.size(), 60); ++back) {
      REQUIRE(cuCtxSetCurrent(gone[gone.size() - back]) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    gone.push_back(context);
  }
  // One that a thread has on its stack is not another one's.
  CUcontext held = nullptr, popped = nullptr;
  CU_OK(cuCtxCreate_v2(&held, 0, 0));
  CU_OK(cuCtxPushCurrent_v2(held));
  CU_OK(cuCtxDestroy_v2(held));  // still on the stack once
  for (int round = 0; round < 200; ++round) {
    CUcontext context = nullptr;
    CU_OK(cuCtxCreate_v2(&context, 0, 0));
    REQUIRE(context != held);
    CU_OK(cuCtxDestroy_v2(context));
  }
  CU_OK(cuCtxPopCurrent_v2(&popped));
  CHECK(popped == held);
}
