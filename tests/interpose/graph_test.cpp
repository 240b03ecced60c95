// Graphs: explicit nodes, capture within and across streams, update, clone, user objects.
#include <atomic>
#include <cstring>

#include "tests/interpose/fixture.h"

using namespace gridloom;
using test::FakeEngine;

namespace {

CUDA_KERNEL_NODE_PARAMS_v2 Node(CUfunction function, unsigned grid = 1) {
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  params.function = function;
  params.grid_dim_x = grid;
  params.grid_dim_y = params.grid_dim_z = params.block_dim_x = params.block_dim_y = params.block_dim_z = 1;
  return params;
}

struct TwoStreams {
  TwoStreams() {
    CU_OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  }
  ~TwoStreams() {
    cuStreamDestroy_v2(a);
    cuStreamDestroy_v2(b);
    cuEventDestroy_v2(fork);
    cuEventDestroy_v2(join);
  }
  CUstream a, b;
  CUevent fork, join;
};

void Launch(CUfunction function, CUstream stream, unsigned grid = 1) {
  CU_OK(cuLaunchKernel(function, grid, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
}

}  // namespace

TEST_CASE("ExplicitGraph_RunsEveryKindOfNodeInOrder", "[graph]") {
  const test::Fixture fixture;
  CUdeviceptr device = 0;
  CU_OK(cuMemAlloc_v2(&device, 256));
  std::vector<unsigned char> host(256, 0);
  std::atomic<int> host_ran{0};

  CUgraph graph;
  CU_OK(cuGraphCreate(&graph, 0));
  CUgraphNode fill, kernel, call, copy;
  const CUDA_MEMSET_NODE_PARAMS fill_params{device, 0, 0x5a, 1, 256, 1};
  CU_OK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_params, fixture.context));
  const auto kernel_params = Node(fixture.Function("nothing"), 3);
  CU_OK(cuGraphAddKernelNode_v2(&kernel, graph, &fill, 1, &kernel_params));
  const CUDA_HOST_NODE_PARAMS host_params{[](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &host_ran};
  CU_OK(cuGraphAddHostNode(&call, graph, &kernel, 1, &host_params));
  CUDA_MEMCPY3D copy_params{};
  copy_params.src_type = CU_MEMORYTYPE_DEVICE;
  copy_params.src_device = device;
  copy_params.dst_type = CU_MEMORYTYPE_HOST;
  copy_params.dst_host = host.data();
  copy_params.width_bytes = 256;
  copy_params.height = copy_params.depth = 1;
  CU_OK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &copy_params, fixture.context));

  std::size_t count = 0;
  CU_OK(cuGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 4);
  CU_OK(cuGraphGetEdges(graph, nullptr, nullptr, &count));
  CHECK(count == 3);
  CU_OK(cuGraphGetRootNodes(graph, nullptr, &count));
  CHECK(count == 1);
  CUgraphNodeType type;
  CU_OK(cuGraphNodeGetType(copy, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_MEMCPY);

  CUgraphExec exec;
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CU_OK(cuGraphLaunch(exec, nullptr));
  CU_OK(cuCtxSynchronize());
  CHECK(host_ran == 3);
  CHECK(FakeEngine::Get().TakeLaunches().size() == 3);
  CHECK(host == std::vector<unsigned char>(256, 0x5a));

  // Change one node of the executable graph, disable another.
  const auto wider = Node(fixture.Function("nothing"), 7);
  CU_OK(cuGraphExecKernelNodeSetParams_v2(exec, kernel, &wider));
  CU_OK(cuGraphNodeSetEnabled(exec, fill, 0));
  CU_OK(cuMemsetD8_v2(device, 0x11, 256));
  CU_OK(cuGraphLaunch(exec, nullptr));
  CU_OK(cuCtxSynchronize());
  CHECK(FakeEngine::Get().TakeLaunches().at(0).grid.x == 7);
  CHECK(host == std::vector<unsigned char>(256, 0x11));
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
  CHECK(cuGraphLaunch(exec, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Graph_RefusesCyclesAndForeignNodes", "[graph]") {
  const test::Fixture fixture;
  CUgraph graph, other;
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(cuGraphCreate(&other, 0));
  CUgraphNode a, b, c;
  CU_OK(cuGraphAddEmptyNode(&a, graph, nullptr, 0));
  CU_OK(cuGraphAddEmptyNode(&b, graph, &a, 1));
  CHECK(cuGraphAddEmptyNode(&c, other, &a, 1) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphAddDependencies(graph, &b, &a, 1));
  CUgraphExec exec;
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphRemoveDependencies(graph, &b, &a, 1));
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CU_OK(cuGraphDestroyNode(a));
  CHECK(cuGraphDestroyNode(a) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphDestroy(graph));
  CU_OK(cuGraphDestroy(other));
  CU_OK(cuGraphExecDestroy(exec));
}

TEST_CASE("Capture_RecordsInsteadOfRunning", "[graph]") {
  const test::Fixture fixture;
  const TwoStreams s;
  const CUfunction nothing = fixture.Function("nothing");
  CU_OK(cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  Launch(nothing, s.a, 1);
  // Fork to b and join again.
  CU_OK(cuEventRecord(s.fork, s.a));
  CU_OK(cuStreamWaitEvent(s.b, s.fork, 0));
  Launch(nothing, s.b, 2);
  Launch(nothing, s.a, 3);
  CU_OK(cuEventRecord(s.join, s.b));
  CU_OK(cuStreamWaitEvent(s.a, s.join, 0));
  Launch(nothing, s.a, 4);
  CUstreamCaptureStatus status;
  CU_OK(cuStreamIsCapturing(s.b, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(cuEventQuery(s.fork) == CUDA_ERROR_CAPTURED_EVENT);
  CUgraph broken;
  CHECK(cuStreamEndCapture(s.a, &broken) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);  // asking spoiled it
  CHECK(FakeEngine::Get().launches() == 0);

  CU_OK(cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  Launch(nothing, s.a, 1);
  CU_OK(cuEventRecord(s.fork, s.a));
  CU_OK(cuStreamWaitEvent(s.b, s.fork, 0));
  Launch(nothing, s.b, 2);
  Launch(nothing, s.a, 3);
  CU_OK(cuEventRecord(s.join, s.b));
  CU_OK(cuStreamWaitEvent(s.a, s.join, 0));
  Launch(nothing, s.a, 4);
  CUgraph graph;
  CU_OK(cuStreamEndCapture(s.a, &graph));
  std::size_t nodes = 0, edges = 0;
  CU_OK(cuGraphGetNodes(graph, nullptr, &nodes));
  CU_OK(cuGraphGetEdges(graph, nullptr, nullptr, &edges));
  CHECK(nodes == 4);
  CHECK(edges == 4);  // a diamond
  CUgraphExec exec;
  CU_OK(cuGraphInstantiate_v2(&exec, graph, nullptr, nullptr, 0));
  CU_OK(cuGraphLaunch(exec, s.a));
  CU_OK(cuStreamSynchronize(s.a));
  const auto launches = FakeEngine::Get().TakeLaunches();
  REQUIRE(launches.size() == 4);
  CHECK(launches.front().grid.x == 1);
  CHECK(launches.back().grid.x == 4);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
}

TEST_CASE("Capture_ModulesMayBeLoaded", "[graph]") {
  const test::Fixture fixture;
  const TwoStreams s;
  CU_OK(cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUmodule module = nullptr;
  CU_OK(cuModuleLoadData(&module, test::kPtx));
  CUfunction nothing = nullptr;
  CU_OK(cuModuleGetFunction(&nothing, module, "nothing"));
  Launch(nothing, s.a, 5);
  CUgraph graph = nullptr;
  CU_OK(cuStreamEndCapture(s.a, &graph));
  CUgraphExec exec;
  CU_OK(cuGraphInstantiate_v2(&exec, graph, nullptr, nullptr, 0));
  CU_OK(cuGraphLaunch(exec, s.a));
  CU_OK(cuStreamSynchronize(s.a));
  const auto launches = FakeEngine::Get().TakeLaunches();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].grid.x == 5);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
  CU_OK(cuModuleUnload(module));
}

TEST_CASE("Capture_ReportsMisuse", "[graph]") {
  const test::Fixture fixture;
  const TwoStreams s;
  const CUfunction nothing = fixture.Function("nothing");
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(s.a, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  SECTION("synchronising") {
    CU_OK(cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuStreamSynchronize(s.a) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(cuStreamEndCapture(s.a, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("not joined") {
    CU_OK(cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    Launch(nothing, s.a);
    CU_OK(cuEventRecord(s.fork, s.a));
    CU_OK(cuStreamWaitEvent(s.b, s.fork, 0));
    Launch(nothing, s.b);
    CHECK(cuStreamEndCapture(s.b, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK(cuStreamEndCapture(s.a, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("work outside the capture") {
    CU_OK(cuEventRecord(s.fork, s.b));
    CU_OK(cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuStreamWaitEvent(s.a, s.fork, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK(cuStreamEndCapture(s.a, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("unsafe calls in global mode") {
    CU_OK(cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUdeviceptr pointer = 0;
    CHECK(cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(cuStreamEndCapture(s.a, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("legacy stream") {
    CUstream blocking;
    CU_OK(cuStreamCreate(&blocking, 0));
    CU_OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
          CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU_OK(cuStreamDestroy_v2(blocking));
  }
  CHECK(graph == nullptr);
  CU_OK(cuStreamSynchronize(s.a));  // the streams are usable again
}

TEST_CASE("ExecUpdate_TakesSameShapeAndRefusesOthers", "[graph]") {
  const test::Fixture fixture;
  const TwoStreams s;
  const CUfunction nothing = fixture.Function("nothing");
  const auto capture = [&](unsigned first, unsigned count) {
    CUgraph graph;
    CU_OK(cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (unsigned i = 0; i < count; ++i) Launch(nothing, s.a, first + i);
    CU_OK(cuStreamEndCapture(s.a, &graph));
    return graph;
  };
  const CUgraph one = capture(10, 2), two = capture(20, 2), three = capture(30, 3);
  CUgraphExec exec;
  CU_OK(cuGraphInstantiateWithFlags(&exec, one, 0));
  CUgraphExecUpdateResultInfo info{};
  CU_OK(cuGraphExecUpdate_v2(exec, two, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  CU_OK(cuGraphLaunch(exec, s.a));
  CU_OK(cuStreamSynchronize(s.a));
  const auto launches = FakeEngine::Get().TakeLaunches();
  REQUIRE(launches.size() == 2);
  CHECK(launches[0].grid.x == 20);
  CHECK(cuGraphExecUpdate_v2(exec, three, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  for (CUgraph graph : {one, two, three}) CU_OK(cuGraphDestroy(graph));
  CU_OK(cuGraphExecDestroy(exec));
}

TEST_CASE("CloneAndChildGraphs_AreCopies", "[graph]") {
  const test::Fixture fixture;
  CUgraph graph, clone, parent;
  CUgraphNode node, found, child;
  CU_OK(cuGraphCreate(&graph, 0));
  const auto params = Node(fixture.Function("nothing"), 5);
  CU_OK(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params));
  CU_OK(cuGraphClone(&clone, graph));
  CU_OK(cuGraphNodeFindInClone(&found, node, clone));
  CHECK(found != node);
  const auto changed = Node(fixture.Function("nothing"), 6);
  CU_OK(cuGraphKernelNodeSetParams_v2(node, &changed));
  CUDA_KERNEL_NODE_PARAMS_v2 read{};
  CU_OK(cuGraphKernelNodeGetParams_v2(found, &read));
  CHECK(read.grid_dim_x == 5);
  CU_OK(cuGraphCreate(&parent, 0));
  CU_OK(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, clone));
  CU_OK(cuGraphDestroy(clone));
  CUgraphExec exec;
  CU_OK(cuGraphInstantiateWithFlags(&exec, parent, 0));
  CU_OK(cuGraphDestroy(parent));
  CU_OK(cuGraphLaunch(exec, nullptr));
  CU_OK(cuGraphExecDestroy(exec));  // while it may still run
  CU_OK(cuCtxSynchronize());
  CHECK(FakeEngine::Get().TakeLaunches().at(0).grid.x == 5);
  CU_OK(cuGraphDestroy(graph));
}

TEST_CASE("AllocationNodes_GiveMemoryToTheGraph", "[graph]") {
  const test::Fixture fixture;
  CUgraph graph;
  CUgraphNode alloc, fill, free;
  CU_OK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool_props.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.pool_props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytes = 4096;
  CU_OK(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &params));
  CHECK(params.pointer != 0);
  const CUDA_MEMSET_NODE_PARAMS fill_params{params.pointer, 0, 1, 4, 1024, 1};
  CU_OK(cuGraphAddMemsetNode(&fill, graph, &alloc, 1, &fill_params, nullptr));
  CU_OK(cuGraphAddMemFreeNode(&free, graph, &fill, 1, params.pointer));
  CHECK(cuGraphDestroyNode(fill) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuGraphRemoveDependencies(graph, &fill, &free, 1) == CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExec exec;
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 2; ++i) CU_OK(cuGraphLaunch(exec, nullptr));
  CU_OK(cuCtxSynchronize());
  CHECK(cuGraphClone(&graph, graph) == CUDA_ERROR_NOT_SUPPORTED);
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
}

TEST_CASE("UserObjects_DieWithTheirLastOwner", "[graph]") {
  const test::Fixture fixture;
  int destroyed = 0;
  CUuserObject object;
  CU_OK(cuUserObjectCreate(
      &object, &destroyed, [](void* data) { ++*static_cast<int*>(data); }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph graph;
  CUgraphExec exec;
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CU_OK(cuGraphDestroy(graph));
  CHECK(destroyed == 0);
  CU_OK(cuGraphExecDestroy(exec));
  CHECK(destroyed == 1);
}

TEST_CASE("UserObjects_OfChildGraphsInChildGraphs_DieWithTheGraphsAround", "[graph]") {
  const test::Fixture fixture;
  int destroyed = 0;
  CUuserObject object;
  CU_OK(cuUserObjectCreate(
      &object, &destroyed, [](void* data) { ++*static_cast<int*>(data); }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph inner, middle, outer, copy, shown = nullptr, deeper = nullptr;
  CUgraphNode node, child;
  CUgraphExec exec;
  for (CUgraph* graph : {&inner, &middle, &outer}) CU_OK(cuGraphCreate(graph, 0));
  CU_OK(cuGraphRetainUserObject(inner, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CU_OK(cuGraphAddChildGraphNode(&node, middle, nullptr, 0, inner));
  CU_OK(cuGraphAddChildGraphNode(&node, outer, nullptr, 0, middle));
  CU_OK(cuGraphClone(&copy, outer));
  CU_OK(cuGraphInstantiateWithFlags(&exec, copy, 0));
  // Who asks for a child's graph does not own it.
  CU_OK(cuGraphChildGraphNodeGetGraph(node, &shown));
  std::size_t count = 1;
  CU_OK(cuGraphGetNodes(shown, &child, &count));
  CU_OK(cuGraphChildGraphNodeGetGraph(child, &deeper));
  for (const CUgraph graph : {inner, middle, copy, outer}) CU_OK(cuGraphDestroy(graph));
  CHECK(cuGraphGetNodes(deeper, nullptr, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(destroyed == 0);
  CU_OK(cuGraphExecDestroy(exec));
  CHECK(destroyed == 1);
  CHECK(cuUserObjectRetain(object, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("ConditionalNode_TakesConditionsOfItsGraphAndOfThoseAroundIt", "[graph]") {
  const test::Fixture fixture;
  CUgraph graph, other;
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(cuGraphCreate(&other, 0));
  CUgraphConditionalHandle own = 0, second = 0, foreign = 0;
  CU_OK(cuGraphConditionalHandleCreate(&own, graph, fixture.context, 0, 0));
  CU_OK(cuGraphConditionalHandleCreate(&second, graph, fixture.context, 0, 0));
  CU_OK(cuGraphConditionalHandleCreate(&foreign, other, fixture.context, 0, 0));
  CUgraphNode node = nullptr;
  CUgraph body = nullptr;
  const auto add = [&](CUgraph to, CUgraphConditionalHandle handle) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    const CUresult status = cuGraphAddNode(&node, to, nullptr, 0, &params);
    if (status == CUDA_SUCCESS) body = params.conditional.graphs[0];
    return status;
  };
  CHECK(add(graph, foreign) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(add(graph, own));
  CHECK(add(body, foreign) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(add(body, second));
  CU_OK(cuGraphDestroy(graph));
  CU_OK(cuGraphDestroy(other));
}
