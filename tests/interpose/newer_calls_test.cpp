// Functions that CUDA 13.1 to 13.5 added to the driver interface.
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "interpose/api/newer_types.h"
#include "interpose/api/tensor_map_types.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;
using test::FakeEngine;

TEST_CASE("DevResource_OfDeviceContextAndStream_IsAllSms", "[newer]") {
  const test::Fixture fixture;
  int sms = 0;
  CU_OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  CUstream stream = nullptr;
  CU_OK(cuStreamCreate(&stream, 0));
  for (int of = 0; of < 3; ++of) {
    CUdevResource resource;
    std::memset(&resource, 0xff, sizeof resource);
    const auto ask = [&](CUdevResource* result, CUdevResourceType type) {
      if (of == 0) return cuDeviceGetDevResource(0, result, type);
      return of == 1 ? cuCtxGetDevResource(fixture.context, result, type)
                     : cuStreamGetDevResource(stream, result, type);
    };
    INFO("of " << of);
    CU_OK(ask(&resource, CU_DEV_RESOURCE_TYPE_SM));
    CHECK(resource.type == CU_DEV_RESOURCE_TYPE_SM);
    CHECK(resource.sm.sm_count == static_cast<unsigned>(sms));
    CHECK(resource.sm.min_partition >= 2);
    CHECK(resource.sm.min_partition % resource.sm.coscheduled == 0);
    CHECK(resource.next == nullptr);
    CHECK(ask(&resource, CU_DEV_RESOURCE_TYPE_INVALID) == CUDA_ERROR_INVALID_RESOURCE_TYPE);
    CHECK(ask(nullptr, CU_DEV_RESOURCE_TYPE_SM) == CUDA_ERROR_INVALID_VALUE);
  }
  CUdevResource resource;
  CHECK(cuDeviceGetDevResource(1, &resource, CU_DEV_RESOURCE_TYPE_SM) == CUDA_ERROR_INVALID_DEVICE);
  CU_OK(cuStreamGetDevResource(nullptr, &resource, CU_DEV_RESOURCE_TYPE_SM));
  CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("TileKernels_AreLaunchedWithBlocksOfOne", "[newer]") {
  const test::Fixture fixture;
  const std::string head = ".version 9.0\n.target sm_75\n.address_size 64\n";
  const std::string shared = "{\n.shared .align 16 .b8 tile[50000];\n.reg .b32 %r;\nmov.b32 %r, tile;\nret;\n}\n";
  const auto load = [](const std::string& ptx, CUmodule* module) { return cuModuleLoadData(module, ptx.c_str()); };
  const auto launch = [](CUmodule module, const char* name, unsigned x, unsigned y) {
    CUfunction function = nullptr;
    CU_OK(cuModuleGetFunction(&function, module, name));
    return cuLaunchKernel(function, 3, 1, 1, x, y, 1, 0, nullptr, nullptr, nullptr);
  };
  CUmodule module = nullptr;
  CU_OK(load(head + ".visible .entry tile()\n.reqntid 32, 4\n.language 7\n" + shared +
                 ".visible .entry other()\n.reqntid 64\n.language 1\n{\nret;\n}\n.visible .entry plain()\n.reqntid "
                 "64\n{\nret;\n}\n",
             &module));
  test::FakeEngine::Get().TakeLaunches();
  CU_OK(launch(module, "tile", 1, 1));
  CU_OK(launch(module, "tile", 32, 4));
  CHECK(launch(module, "tile", 2, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(module, "tile", 128, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(module, "other", 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(module, "plain", 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuCtxSynchronize());
  const auto launches = test::FakeEngine::Get().TakeLaunches();
  REQUIRE(launches.size() == 2);
  for (const test::LoggedLaunch& one : launches)
    CHECK((one.block.x == 32 && one.block.y == 4 && one.block.z == 1 && one.grid.x == 3));
  CU_OK(cuModuleUnload(module));
  // Static shared memory of more than 48 KiB is theirs alone.
  CHECK(load(head + ".visible .entry plain()\n.reqntid 32, 4\n" + shared, &module) == CUDA_ERROR_INVALID_PTX);
}

TEST_CASE("ParamCount_OfFunctionsAndKernels", "[newer]") {
  const test::Fixture fixture;
  std::size_t count = 99;
  CU_OK(cuFuncGetParamCount(fixture.Function("fill"), &count));
  CHECK(count == 3);
  CU_OK(cuFuncGetParamCount(fixture.Function("nothing"), &count));
  CHECK(count == 0);
  CHECK(cuFuncGetParamCount(fixture.Function("fill"), nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CU_OK(cuLibraryLoadData(&library, test::kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CU_OK(cuLibraryGetKernel(&kernel, library, "fill"));
  CU_OK(cuKernelGetParamCount(kernel, &count));
  CHECK(count == 3);
  CU_OK(cuLibraryUnload(library));
}

TEST_CASE("Ids_OfGraphsAndNodes_StayAndAreNeverTwice", "[newer]") {
  const test::Fixture fixture;
  CUgraph graphs[2];
  std::set<unsigned> ids;
  std::set<std::uint64_t> tools_ids;
  for (CUgraph& graph : graphs) {
    CU_OK(cuGraphCreate(&graph, 0));
    unsigned id = 0;
    CU_OK(cuGraphGetId(graph, &id));
    CHECK(ids.insert(id).second);
    CUgraphNode nodes[4];
    unsigned local[4];
    for (int i = 0; i < 3; ++i) {
      CU_OK(cuGraphAddEmptyNode(&nodes[i], graph, nullptr, 0));
      CU_OK(cuGraphNodeGetLocalId(nodes[i], &local[i]));
    }
    CU_OK(cuGraphDestroyNode(nodes[0]));
    unsigned gone = 0;
    CHECK(cuGraphNodeGetLocalId(nodes[0], &gone) == CUDA_ERROR_INVALID_VALUE);
    CU_OK(cuGraphAddEmptyNode(&nodes[3], graph, nullptr, 0));
    CU_OK(cuGraphNodeGetLocalId(nodes[3], &local[3]));
    CHECK(std::set<unsigned>(local, local + 4).size() == 4);
    for (int i = 1; i < 4; ++i) {
      unsigned again = 99;
      std::uint64_t tools = 0;
      CUgraph around = nullptr;
      CU_OK(cuGraphNodeGetLocalId(nodes[i], &again));
      CHECK(again == local[i]);
      CU_OK(cuGraphNodeGetToolsId(nodes[i], &tools));
      CHECK(tools_ids.insert(tools).second);
      CU_OK(cuGraphNodeGetContainingGraph(nodes[i], &around));
      CHECK(around == graph);
    }
    CUgraphExec exec = nullptr;
    CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CU_OK(cuGraphExecGetId(exec, &id));
    CHECK(ids.insert(id).second);
    CU_OK(cuGraphExecDestroy(exec));
  }
  CUgraphNode child = nullptr, inner = nullptr;
  CU_OK(cuGraphAddChildGraphNode(&child, graphs[0], nullptr, 0, graphs[1]));
  CUgraph copy = nullptr, around = nullptr;
  CU_OK(cuGraphChildGraphNodeGetGraph(child, &copy));
  std::size_t one = 1;
  CU_OK(cuGraphGetNodes(copy, &inner, &one));
  CU_OK(cuGraphNodeGetContainingGraph(inner, &around));
  CHECK(around == copy);
  for (CUgraph graph : graphs) CU_OK(cuGraphDestroy(graph));
}

TEST_CASE("NodeParams_AreThoseThatTheNodeWasMadeWith", "[newer]") {
  const test::Fixture fixture;
  CUdeviceptr device = 0;
  CU_OK(cuMemAlloc_v2(&device, 256));
  CUgraph graph = nullptr;
  CU_OK(cuGraphCreate(&graph, 0));
  CUgraphNodeParams wanted{};
  wanted.type = CU_GRAPH_NODE_TYPE_MEMSET;
  wanted.memset.params = {device, 0, 0x5a, 1, 256, 1};
  wanted.memset.context = fixture.context;
  CUgraphNode fill = nullptr, empty = nullptr, call = nullptr;
  CU_OK(cuGraphAddNode_v3(&fill, graph, nullptr, nullptr, 0, &wanted));
  CUgraphNodeParams got{};
  CU_OK(cuGraphNodeGetParams(fill, &got));
  CHECK(got.type == CU_GRAPH_NODE_TYPE_MEMSET);
  CHECK(got.memset.params.dst == device);
  CHECK(got.memset.params.value == 0x5a);
  CHECK(got.memset.params.width == 256);
  wanted.memset.params.value = 0x17;
  CU_OK(cuGraphNodeSetParams_v2(fill, &wanted));
  CU_OK(cuGraphNodeGetParams(fill, &got));
  CHECK(got.memset.params.value == 0x17);
  const CUDA_HOST_NODE_PARAMS host{[](void*) {}, &got};
  CU_OK(cuGraphAddHostNode(&call, graph, nullptr, 0, &host));
  CU_OK(cuGraphNodeGetParams(call, &got));
  CHECK(got.type == CU_GRAPH_NODE_TYPE_HOST);
  CHECK(got.host.user_data == &got);
  CU_OK(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));
  CU_OK(cuGraphNodeGetParams(empty, &got));
  CHECK(got.type == CU_GRAPH_NODE_TYPE_EMPTY);
  CHECK(cuGraphNodeGetParams(empty, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphDestroy(graph));
  CU_OK(cuMemFree_v2(device));
}

TEST_CASE("CopiesWithAttributes_AndHostFunctionsOfBothModes", "[newer]") {
  const test::Fixture fixture;
  CUdeviceptr device = 0;
  CU_OK(cuMemAlloc_v2(&device, 256));
  CU_OK(cuMemsetD8_v2(device, 0x5a, 256));
  std::vector<unsigned char> host(256, 0);
  CUmemcpyAttributes attributes{};
  const auto target = reinterpret_cast<CUdeviceptr>(host.data());
  CU_OK(cuMemcpyWithAttributesAsync(target, device, 256, &attributes, nullptr));
  CU_OK(cuStreamSynchronize(nullptr));
  CHECK(host == std::vector<unsigned char>(256, 0x5a));
  CHECK(cuMemcpyWithAttributesAsync(target, device, 256, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  // A box of 3 x 2 x 2 bytes out of rows of 16 and layers of 4 rows.
  std::vector<unsigned char> bytes(128), box(12, 0);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i);
  CU_OK(cuMemcpyHtoD_v2(device, bytes.data(), bytes.size()));
  CUDA_MEMCPY3D_BATCH_OP op{};
  op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  op.src.pointer.pointer = device;
  op.src.pointer.row_length = 16;
  op.src.pointer.layer_height = 4;
  op.dst.pointer.pointer = reinterpret_cast<CUdeviceptr>(box.data());
  op.width = 3;
  op.height = op.depth = 2;
  CU_OK(cuMemcpy3DWithAttributesAsync(&op, 0, nullptr));
  CU_OK(cuStreamSynchronize(nullptr));
  CHECK(box == std::vector<unsigned char>{0, 1, 2, 16, 17, 18, 64, 65, 66, 80, 81, 82});
  CHECK(cuMemcpy3DWithAttributesAsync(nullptr, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  std::atomic<int> ran{0};
  const auto count = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
  for (unsigned mode = 0; mode < 2; ++mode) CU_OK(cuLaunchHostFunc_v2(nullptr, count, &ran, mode));
  CHECK(cuLaunchHostFunc_v2(nullptr, count, &ran, 2) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuStreamSynchronize(nullptr));
  CHECK(ran == 2);
  CU_OK(cuMemFree_v2(device));
}

// All functions that driver_api.txt has of 13.1 to 13.5; which of them a device without the feature refuses is asked at
// the end of this file.
TEST_CASE("NewerCalls_AreFoundByTheirVersion", "[newer]") {
  const test::Fixture fixture;
  const std::pair<int, const char*> functions[] = {
      {13010, "cuDevSmResourceSplit"},
      {13010, "cuGraphExecGetId"},
      {13010, "cuGraphGetId"},
      {13010, "cuGraphNodeGetContainingGraph"},
      {13010, "cuGraphNodeGetLocalId"},
      {13010, "cuGraphNodeGetToolsId"},
      {13010, "cuLaunchHostFunc"},
      {13010, "cuMulticastBindAddr"},
      {13010, "cuMulticastBindMem"},
      {13010, "cuStreamBeginCaptureToCig"},
      {13010, "cuStreamEndCaptureToCig"},
      {13010, "cuStreamGetDevResource"},
      {13020, "cuCoredumpDeregisterCompleteCallback"},
      {13020, "cuCoredumpDeregisterStartCallback"},
      {13020, "cuCoredumpRegisterCompleteCallback"},
      {13020, "cuCoredumpRegisterStartCallback"},
      {13020, "cuFuncGetParamCount"},
      {13020, "cuGraphNodeGetParams"},
      {13020, "cuKernelGetParamCount"},
      {13020, "cuMemcpy3DWithAttributesAsync"},
      {13020, "cuMemcpyWithAttributesAsync"},
      {13030, "cuLogicalEndpointAddDevice"},
      {13030, "cuLogicalEndpointBindAddr"},
      {13030, "cuLogicalEndpointBindMem"},
      {13030, "cuLogicalEndpointCreate"},
      {13030, "cuLogicalEndpointDestroy"},
      {13030, "cuLogicalEndpointExport"},
      {13030, "cuLogicalEndpointGetLimits"},
      {13030, "cuLogicalEndpointIdRelease"},
      {13030, "cuLogicalEndpointIdReserve"},
      {13030, "cuLogicalEndpointImport"},
      {13030, "cuLogicalEndpointQuery"},
      {13030, "cuLogicalEndpointUnbind"},
      {13030, "cuStreamBeginRecaptureToGraph"},
      {13040, "cuCheckpointOperationComplete"},
      {13040, "cuDeviceGetCliqueCount"},
      {13040, "cuDeviceGetCliqueInfo"},
      {13040, "cuDeviceGetFabricClusterUuid"},
      {13040, "cuGraphAddNode"},
      {13040, "cuGraphNodeSetParams"},
      {13040, "cuMemGetLocationInfo"},
      {13050, "cuFabricCpyBatchAsync"},
      {13050, "cuTensorMapSetAllocationClass"},
  };
  CHECK(std::size(functions) == 43);
  for (const auto& [version, name] : functions) {
    INFO(name << " of " << version);
    void *found = nullptr, *before = nullptr;
    CU_OK(cuGetProcAddress_v2(name, &found, version, 0, nullptr));
    CHECK(found != nullptr);
    cuGetProcAddress_v2(name, &before, version - 10, 0, nullptr);
    CHECK(before != found);
  }
}

TEST_CASE("CoredumpCallbacks_AreKeptUntilTheyAreGivenBack", "[newer]") {
  const CUcoredumpStatusCallback never = [](void*, int, CUdevice) { std::abort(); };
  int data = 0;
  CUcoredumpCallbackHandle first = nullptr, second = nullptr, end = nullptr;
  CU_OK(cuCoredumpRegisterStartCallback(never, &data, &first));
  CU_OK(cuCoredumpRegisterStartCallback(never, &data, &second));
  CU_OK(cuCoredumpRegisterCompleteCallback(never, nullptr, &end));
  CU_OK(cuCoredumpRegisterCompleteCallback(never, nullptr, nullptr));
  CHECK(first != second);
  CHECK(cuCoredumpRegisterStartCallback(nullptr, &data, &first) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCoredumpDeregisterStartCallback(end) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCoredumpDeregisterCompleteCallback(first) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuCoredumpDeregisterStartCallback(first));
  CHECK(cuCoredumpDeregisterStartCallback(first) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCoredumpDeregisterStartCallback(nullptr) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuCoredumpDeregisterStartCallback(second));
  CU_OK(cuCoredumpDeregisterCompleteCallback(end));
}

TEST_CASE("TensorMaps_HaveTheSmallAllocationClassWhateverIsAskedFor", "[newer]") {
  const test::Fixture fixture;
  CUtensorMap map;
  std::memset(&map, 0x5a, sizeof map);
  const CUtensorMap before = map;
  for (const auto asked :
       {CU_TENSOR_MAP_ALLOC_CLASS_AUTO, CU_TENSOR_MAP_ALLOC_CLASS_SMALL, CU_TENSOR_MAP_ALLOC_CLASS_LARGE}) {
    CUtensorMapAllocClass got = CU_TENSOR_MAP_ALLOC_CLASS_AUTO;
    CU_OK(cuTensorMapSetAllocationClass(&map, asked, &got));
    CHECK(got == CU_TENSOR_MAP_ALLOC_CLASS_SMALL);
    CU_OK(cuTensorMapSetAllocationClass(&map, asked, nullptr));
  }
  for (const int wrong : {-1, 3}) {
    CUtensorMapAllocClass got = CU_TENSOR_MAP_ALLOC_CLASS_LARGE;
    CHECK(cuTensorMapSetAllocationClass(&map, static_cast<CUtensorMapAllocClass>(wrong), &got) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(got == CU_TENSOR_MAP_ALLOC_CLASS_SMALL);
  }
  CHECK(cuTensorMapSetAllocationClass(nullptr, CU_TENSOR_MAP_ALLOC_CLASS_SMALL, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(std::memcmp(&map, &before, sizeof map) == 0);
}

namespace {

/// What a recapture's function was told, and what it answers.
struct Told {
  std::vector<CUgraphNode> nodes;
  std::vector<unsigned> before, after;  ///< widths of grids
  CUresult answer = CUDA_SUCCESS;

  static CUresult Call(void* data, CUgraphNode node, const CUgraphNodeParams* before, const CUgraphNodeParams* after,
                       CUgraphRecaptureStatus status) {
    Told& told = *static_cast<Told*>(data);
    CHECK(status == CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE);
    CHECK((before->type == CU_GRAPH_NODE_TYPE_KERNEL && after->type == CU_GRAPH_NODE_TYPE_KERNEL));
    told.nodes.push_back(node);
    told.before.push_back(before->kernel.grid_dim_x);
    told.after.push_back(after->kernel.grid_dim_x);
    return told.answer;
  }
};

/// Memory, two launches into it, and the memory back.
class Captured {
 public:
  explicit Captured(const test::Fixture& fixture) : fixture_(fixture) {
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    memory = Allocate();
    CU_OK(Fill(1, 7));
    CU_OK(Fill(2, 8));
    CU_OK(cuMemFreeAsync(memory, stream));
    CU_OK(cuStreamEndCapture(stream, &graph));
  }
  ~Captured() {
    static_cast<void>(cuGraphDestroy(graph));
    static_cast<void>(cuStreamDestroy_v2(stream));
  }
  CUresult Begin(Told* told) {
    return cuStreamBeginRecaptureToGraph(stream, CU_STREAM_CAPTURE_MODE_RELAXED, graph,
                                         told != nullptr ? &Told::Call : nullptr, told);
  }
  CUdeviceptr Allocate(std::size_t bytes = 256) const {
    CUdeviceptr pointer = 0;
    CU_OK(cuMemAllocAsync(&pointer, bytes, stream));
    return pointer;
  }
  CUresult Fill(unsigned grid, std::uint32_t value) const {
    unsigned char flag = 0;
    CUdeviceptr target = memory;
    void* params[] = {&target, &value, &flag};
    return cuLaunchKernel(fixture_.Function("fill"), grid, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
  }
  std::vector<CUgraphNode> Nodes() const {
    CUgraphNode nodes[8];
    std::size_t count = 8;
    CU_OK(cuGraphGetNodes(graph, nodes, &count));
    return {nodes, nodes + count};
  }
  /// Values that the two launches of the graph have.
  std::vector<std::uint32_t> Launched() const {
    CUgraphExec exec = nullptr;
    CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    FakeEngine::Get().TakeLaunches();
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuGraphExecDestroy(exec));
    std::vector<std::uint32_t> values;
    for (const auto& launch : FakeEngine::Get().TakeLaunches()) values.push_back(test::Param<std::uint32_t>(launch, 8));
    return values;
  }

  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUdeviceptr memory = 0;

 private:
  const test::Fixture& fixture_;
};

}  // namespace

TEST_CASE("Recapture_GivesTheNodesThatThereAreOtherParameters", "[newer]") {
  const test::Fixture fixture;
  Captured captured(fixture);
  const auto nodes = captured.Nodes();
  REQUIRE(nodes.size() == 4);
  CHECK(captured.Launched() == std::vector<std::uint32_t>{7, 8});
  for (const bool tells : {true, false}) {
    Told told;
    CU_OK(captured.Begin(tells ? &told : nullptr));
    CHECK(captured.Allocate() == captured.memory);
    CU_OK(captured.Fill(1, 7));
    CU_OK(captured.Fill(3, tells ? 9 : 10));
    CU_OK(cuMemFreeAsync(captured.memory, captured.stream));
    CUgraph same = nullptr;
    CU_OK(cuStreamEndCapture(captured.stream, &same));
    CHECK(same == captured.graph);
    CHECK(captured.Nodes() == nodes);
    CHECK(captured.Launched() == std::vector<std::uint32_t>{7, tells ? 9u : 10u});
    if (!tells) continue;
    CHECK(told.nodes == std::vector<CUgraphNode>{nodes[2]});  // the other one is as it was
    CHECK(told.before == std::vector<unsigned>{2});
    CHECK(told.after == std::vector<unsigned>{3});
  }
}

TEST_CASE("Recapture_OfAnotherGraph_Fails", "[newer]") {
  const test::Fixture fixture;
  const auto ends = [](Captured& captured, CUresult expected) {
    CUgraph graph = nullptr;
    CHECK(cuStreamEndCapture(captured.stream, &graph) == expected);
    CHECK(graph == nullptr);
    CHECK(cuStreamQuery(captured.stream) == CUDA_SUCCESS);
  };
  {
    INFO("an operation of another kind");
    Captured captured(fixture);
    CU_OK(captured.Begin(nullptr));
    CHECK(captured.Fill(1, 7) == CUDA_ERROR_GRAPH_RECAPTURE_FAILURE);
    CHECK(captured.Fill(1, 7) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    ends(captured, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  {
    INFO("memory of another size");
    Captured captured(fixture);
    CU_OK(captured.Begin(nullptr));
    CUdeviceptr pointer = 0;
    CHECK(cuMemAllocAsync(&pointer, 512, captured.stream) == CUDA_ERROR_GRAPH_RECAPTURE_FAILURE);
    ends(captured, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  {
    INFO("other dependencies");
    Captured captured(fixture);
    CU_OK(captured.Begin(nullptr));
    captured.Allocate();
    CU_OK(cuStreamUpdateCaptureDependencies(captured.stream, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    CHECK(captured.Fill(1, 7) == CUDA_ERROR_GRAPH_RECAPTURE_FAILURE);
    ends(captured, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  {
    INFO("the program refuses");
    Captured captured(fixture);
    Told told;
    told.answer = CUDA_ERROR_UNKNOWN;
    CU_OK(captured.Begin(&told));
    captured.Allocate();
    CHECK(captured.Fill(1, 6) == CUDA_ERROR_GRAPH_RECAPTURE_FAILURE);
    CHECK(told.nodes.size() == 1);
    ends(captured, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  {
    INFO("fewer operations, then more");
    Captured captured(fixture);
    CU_OK(captured.Begin(nullptr));
    captured.Allocate();
    ends(captured, CUDA_ERROR_GRAPH_RECAPTURE_FAILURE);
    CU_OK(captured.Begin(nullptr));
    captured.Allocate();
    CU_OK(captured.Fill(1, 7));
    CU_OK(captured.Fill(2, 8));
    CU_OK(cuMemFreeAsync(captured.memory, captured.stream));
    CHECK(captured.Fill(1, 7) == CUDA_ERROR_GRAPH_RECAPTURE_FAILURE);
    ends(captured, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  Captured captured(fixture);
  const auto begin = [&](CUstream stream, CUgraph graph, int mode) {
    return cuStreamBeginRecaptureToGraph(stream, static_cast<CUstreamCaptureMode>(mode), graph, nullptr, nullptr);
  };
  CHECK(begin(captured.stream, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(begin(captured.stream, captured.graph, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(begin(nullptr, captured.graph, 0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_CASE("Recapture_GivesUserObjectsBack", "[newer]") {
  const test::Fixture fixture;
  Captured captured(fixture);
  static std::atomic<int> gone;
  gone = 0;
  CUuserObject object = nullptr;
  int data = 0;
  CU_OK(cuUserObjectCreate(
      &object, &data, [](void*) { ++gone; }, 1, 1));
  CU_OK(cuGraphRetainUserObject(captured.graph, object, 1, 1));
  CHECK(gone == 0);
  CU_OK(captured.Begin(nullptr));
  CHECK(gone == 1);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(captured.stream, &graph) == CUDA_ERROR_GRAPH_RECAPTURE_FAILURE);
}

TEST_CASE("LocationInfo_TellsWhereManagedAndPageableMemoryLies", "[newer]") {
  const test::Fixture fixture;
  constexpr std::size_t kRegion = 1 << 20;
  const auto ask = [](CUdeviceptr pointer, std::size_t bytes, std::size_t summary, std::size_t sampling) {
    std::vector<CUmemLocation> locations((bytes + summary - 1) / summary);
    CU_OK(cuMemGetLocationInfo(pointer, bytes, summary, sampling, locations.data()));
    std::vector<int> types;
    for (const CUmemLocation& location : locations) types.push_back(location.type);
    return types;
  };
  constexpr int kNone = CU_MEM_LOCATION_TYPE_NONE, kHost = CU_MEM_LOCATION_TYPE_HOST,
                kDevice = CU_MEM_LOCATION_TYPE_DEVICE;
  CUdeviceptr managed = 0;
  CU_OK(cuMemAllocManaged(&managed, 4 * kRegion, CU_MEM_ATTACH_GLOBAL));
  void* const managed_bytes = reinterpret_cast<void*>(managed);
  std::memset(managed_bytes, 1, 4 * kRegion);
  CHECK(ask(managed, 3 * kRegion + 5, kRegion, 0) == std::vector<int>{kHost, kHost, kHost, kHost});
  CU_OK(cuMemPrefetchAsync_v2(managed, 4 * kRegion, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, nullptr));
  CHECK(ask(managed, 4 * kRegion, 2 * kRegion, kRegion) == std::vector<int>{kDevice, kDevice});
  // Pageable memory, of which one region was touched.
  void* const pageable = mmap(nullptr, 4 * kRegion, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pageable != MAP_FAILED);
  static_cast<void>(madvise(pageable, 4 * kRegion, MADV_NOHUGEPAGE));
  const auto at = reinterpret_cast<CUdeviceptr>(pageable);
  std::memset(static_cast<char*>(pageable) + kRegion, 1, kRegion);
  CHECK(ask(at, 3 * kRegion + 5, kRegion, 0) == std::vector<int>{kNone, kHost, kNone, kNone});
  CHECK(ask(at + kRegion, kRegion, kRegion, 1) == std::vector<int>{kHost});
  CHECK(ask(at, 4 * kRegion, 4 * kRegion, 4096) == std::vector<int>{kNone});

  CUmemLocation location;
  CUdeviceptr device = 0;
  CU_OK(cuMemAlloc_v2(&device, 4096));
  CHECK(cuMemGetLocationInfo(device, 4096, 4096, 0, &location) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetLocationInfo(4096, 4096, 4096, 0, &location) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetLocationInfo(managed, 5 * kRegion, kRegion, 0, &location) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetLocationInfo(managed, kRegion, 0, 0, &location) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetLocationInfo(managed, kRegion, kRegion + 1, 0, &location) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetLocationInfo(managed, kRegion, 4096, 8192, &location) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetLocationInfo(managed, kRegion, kRegion, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetLocationInfo(managed, ~std::size_t{0}, kRegion, 0, &location) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemHostRegister_v2(pageable, kRegion, 0));
  CHECK(cuMemGetLocationInfo(at, kRegion, kRegion, 0, &location) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemHostUnregister(pageable));
  munmap(pageable, 4 * kRegion);
  CU_OK(cuMemFree_v2(device));
  CU_OK(cuMemFree_v2(managed));
}

TEST_CASE("WhatADeviceHasNot_ItsAttributesSay_AndItsCallsRefuse", "[newer]") {
  const test::Fixture fixture;
  const auto attribute = [](CUdevice_attribute which) {
    int value = -1;
    CU_OK(cuDeviceGetAttribute(&value, which, 0));
    return value;
  };
  for (const auto which :
       {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_MULTICAST_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES, CU_DEVICE_ATTRIBUTE_VULKAN_CIG_STREAMS_SUPPORTED})
    CHECK(attribute(which) == 0);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE) == std::numeric_limits<int>::max());
  int value = 0;
  for (const int unknown : {0, -1, 162, 9999})
    CHECK(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(unknown), 0) == CUDA_ERROR_INVALID_VALUE);

  std::size_t count = 0;
  CUuuid uuid;
  CUlogicalEndpointId id = 0;
  int state = 0;
  CHECK(cuDeviceGetCliqueCount(&count, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuDeviceGetCliqueInfo(nullptr, &count, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuDeviceGetFabricClusterUuid(&uuid, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuFabricCpyBatchAsync(0, nullptr, 0, reinterpret_cast<CUstream>(2)) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointIdReserve(&id, 1) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointIdRelease(id, 1) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointCreate(id, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointDestroy(id) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointAddDevice(id, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointBindAddr(id, 0, 0, nullptr, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointBindMem(id, 0, 0, {}, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointUnbind(id, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointExport(nullptr, id, {}) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointImport(id, nullptr, {}) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointGetLimits(nullptr, nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuLogicalEndpointQuery(id, 1, &state) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMulticastBindMem_v2({}, 0, 0, {}, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMulticastBindAddr_v2({}, 0, 0, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuStreamBeginCaptureToCig(nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuStreamEndCaptureToCig(nullptr) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuCheckpointOperationComplete(nullptr) == CUDA_ERROR_NOT_SUPPORTED);
}
