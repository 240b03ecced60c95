// Everything that a program can make and destroy, made and destroyed over and over: neither the process nor the device
// has less memory afterwards. The first argument is the number of rounds (10,000 unless given), the second a pair's
// name: only that one.
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "driver.h"

namespace {

/// Bytes of the heap that are in use, and of the device.
struct Use {
  std::size_t heap, device;
};

Use Measure() {
  DRV(cuCtxSynchronize());
  const struct mallinfo2 heap = mallinfo2();
  std::size_t free = 0, total = 0;
  DRV(cuMemGetInfo(&free, &total));
  return {heap.uordblks + heap.hblkhd, total - free};
}

struct Pair {
  const char* name;
  unsigned share;  // of the rounds, in percent: some take long
  std::function<void()> once;
};

CUcontext g_context = nullptr;
CUstream g_stream = nullptr;
CUfunction g_affine = nullptr;
CUdeviceptr g_memory = 0;
constexpr std::size_t kBytes = 4096, kMapped = 2 << 20;

void Launch(CUfunction function, CUstream stream) {
  CUdeviceptr in = g_memory, out = g_memory + 2048;
  unsigned n = 32;
  void* arguments[] = {&out, &in, &n};
  DRV(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
}

void Streams(unsigned flags) {
  CUstream stream = nullptr;
  DRV(cuStreamCreate(&stream, flags));
  DRV(cuMemsetD8Async(g_memory, 1, 16, stream));
  Launch(g_affine, stream);
  DRV(cuStreamDestroy(stream));  // with work left
}

void Events() {
  CUevent event = nullptr;
  DRV(cuEventCreate(&event, 0));
  DRV(cuEventRecord(event, g_stream));
  DRV(cuStreamWaitEvent(nullptr, event, 0));
  DRV(cuEventDestroy(event));
}

void HostFunctions() {
  DRV(cuLaunchHostFunc(
      g_stream, [](void*) {}, nullptr));
  DRV(cuStreamSynchronize(g_stream));
}

void DeleteNumber(void* object) { delete static_cast<int*>(object); }

// ---- graphs

CUgraphNode AddKernel(CUgraph graph) {
  static CUdeviceptr in, out;
  static unsigned n = 32;
  in = g_memory, out = g_memory + 2048;
  void* arguments[] = {&out, &in, &n};
  CUDA_KERNEL_NODE_PARAMS params = {};
  params.func = g_affine;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 32, params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  CUgraphNode node = nullptr;
  DRV(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  return node;
}

CUgraphNode AddFill(CUgraph graph, CUdeviceptr to, const CUgraphNode* after, std::size_t count) {
  CUDA_MEMSET_NODE_PARAMS params = {};
  params.dst = to, params.elementSize = 4, params.width = 16, params.height = 1, params.value = 3;
  CUgraphNode node = nullptr;
  DRV(cuGraphAddMemsetNode(&node, graph, after, count, &params, g_context));
  return node;
}

CUgraph MakeGraph() {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  DRV(cuGraphCreate(&graph, 0));
  const CUgraphNode kernel = AddKernel(graph);
  const CUgraphNode fill = AddFill(graph, g_memory, &kernel, 1);
  CUDA_HOST_NODE_PARAMS host = {};
  host.fn = [](void*) {};
  DRV(cuGraphAddHostNode(&node, graph, &fill, 1, &host));
  DRV(cuGraphAddEmptyNode(&node, graph, &fill, 1));
  return graph;
}

void Graphs() { DRV(cuGraphDestroy(MakeGraph())); }

void GraphExecs() {
  const CUgraph graph = MakeGraph();
  CUgraphExec exec = nullptr;
  DRV(cuGraphInstantiate(&exec, graph, 0));
  CUgraphExecUpdateResultInfo info = {};
  DRV(cuGraphLaunch(exec, g_stream));
  DRV(cuGraphExecUpdate(exec, graph, &info));
  DRV(cuGraphLaunch(exec, g_stream));
  DRV(cuGraphExecDestroy(exec));  // while it runs
  DRV(cuGraphDestroy(graph));
}

void Clones() {
  const CUgraph graph = MakeGraph();
  CUgraph copy = nullptr, parent = nullptr, child = nullptr;
  CUgraphNode node = nullptr;
  DRV(cuGraphClone(&copy, graph));
  DRV(cuGraphCreate(&parent, 0));
  DRV(cuGraphAddChildGraphNode(&node, parent, nullptr, 0, copy));
  DRV(cuGraphChildGraphNodeGetGraph(node, &child));
  for (const CUgraph one : {parent, copy, graph}) DRV(cuGraphDestroy(one));
}

void GraphNodes() {
  static CUgraph graph = nullptr;
  if (graph == nullptr) DRV(cuGraphCreate(&graph, 0));
  const CUgraphNode kernel = AddKernel(graph);
  const CUgraphNode fill = AddFill(graph, g_memory, &kernel, 1);
  DRV(cuGraphDestroyNode(kernel));
  DRV(cuGraphDestroyNode(fill));
}

void ConditionalGraphs() {
  CUgraph graph = nullptr;
  CUgraphConditionalHandle handle = 0;
  CUgraphNode node = nullptr;
  DRV(cuGraphCreate(&graph, 0));
  DRV(cuGraphConditionalHandleCreate(&handle, graph, g_context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  params.conditional.ctx = g_context;
  DRV(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
  AddFill(params.conditional.phGraph_out[0], g_memory, nullptr, 0);
  CUgraphExec exec = nullptr;
  DRV(cuGraphInstantiate(&exec, graph, 0));
  DRV(cuGraphLaunch(exec, g_stream));
  DRV(cuGraphExecDestroy(exec));
  DRV(cuGraphDestroy(graph));
}

/// Its memory is freed in the graph, by another one, in stream order, or not before the graph goes.
void GraphMemory() {
  static unsigned round = 0;
  const unsigned way = round++ % 4;
  CUgraph graph = nullptr, other = nullptr;
  CUgraphNode alloc = nullptr, node = nullptr;
  DRV(cuGraphCreate(&graph, 0));
  DRV(cuGraphCreate(&other, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = 512 * (1 + round % 37);
  DRV(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &params));
  const CUgraphNode fill = AddFill(graph, params.dptr, &alloc, 1);
  if (way == 0) DRV(cuGraphAddMemFreeNode(&node, graph, &fill, 1, params.dptr));
  if (way == 1) DRV(cuGraphAddMemFreeNode(&node, other, nullptr, 0, params.dptr));
  CUgraphExec exec = nullptr, other_exec = nullptr;
  DRV(cuGraphInstantiate(&exec, graph, 0));
  DRV(cuGraphInstantiate(&other_exec, other, 0));
  DRV(cuGraphLaunch(exec, g_stream));
  DRV(cuGraphLaunch(other_exec, g_stream));
  if (way == 2) DRV(cuMemFreeAsync(params.dptr, g_stream));
  for (const CUgraphExec one : {exec, other_exec}) DRV(cuGraphExecDestroy(one));
  for (const CUgraph one : {graph, other}) DRV(cuGraphDestroy(one));
  if (way == 3) DRV(cuMemFree(params.dptr));
}

void Captures() {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
  DRV(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  DRV(cuStreamBeginCapture(g_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  DRV(cuMemAllocAsync(&memory, kBytes, g_stream));
  DRV(cuMemsetD8Async(memory, 1, kBytes, g_stream));
  Launch(g_affine, g_stream);
  DRV(cuEventRecordWithFlags(event, g_stream, CU_EVENT_RECORD_EXTERNAL));
  DRV(cuMemFreeAsync(memory, g_stream));
  DRV(cuStreamEndCapture(g_stream, &graph));
  DRV(cuGraphInstantiate(&exec, graph, 0));
  DRV(cuGraphLaunch(exec, g_stream));
  DRV(cuEventDestroy(event));
  DRV(cuGraphDestroy(graph));
  DRV(cuGraphExecDestroy(exec));
}

void UserObjects() {
  CUuserObject object = nullptr;
  CUgraph graph = nullptr;
  DRV(cuUserObjectCreate(&object, new int, DeleteNumber, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  DRV(cuGraphCreate(&graph, 0));
  DRV(cuGraphRetainUserObject(graph, object, 1, 0));
  DRV(cuUserObjectRetain(object, 1));
  DRV(cuUserObjectRelease(object, 2));
  DRV(cuGraphDestroy(graph));
}

// ---- memory

void Allocations() {
  CUdeviceptr memory = 0;
  DRV(cuMemAlloc(&memory, kBytes));
  const unsigned on = 1;
  DRV(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
  DRV(cuMemFree(memory));
  std::size_t pitch = 0;
  DRV(cuMemAllocPitch(&memory, &pitch, 100, 10, 4));
  DRV(cuMemFreeAsync(memory, g_stream));
}

void ManagedMemory() {
  CUdeviceptr memory = 0;
  DRV(cuMemAllocManaged(&memory, kBytes, CU_MEM_ATTACH_GLOBAL));
  CUmemLocation device = {};
  device.type = CU_MEM_LOCATION_TYPE_DEVICE;
  DRV(cuMemAdvise(memory, kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
  DRV(cuMemPrefetchAsync(memory, kBytes, device, 0, g_stream));
  DRV(cuMemFree(memory));
}

void HostMemory() {
  void* memory = nullptr;
  DRV(cuMemHostAlloc(&memory, kBytes, CU_MEMHOSTALLOC_DEVICEMAP));
  DRV(cuMemFreeHost(memory));
  static char buffer[8192];
  DRV(cuMemHostRegister(buffer, sizeof buffer, 0));
  DRV(cuMemHostUnregister(buffer));
}

void StreamOrderedMemory() {
  CUdeviceptr memory = 0;
  DRV(cuMemAllocAsync(&memory, kBytes, g_stream));
  DRV(cuMemFreeAsync(memory, g_stream));
}

/// A pool is destroyed before its last block is freed.
void Pools() {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  CUdeviceptr blocks[3];
  DRV(cuMemPoolCreate(&pool, &props));
  for (CUdeviceptr& block : blocks) DRV(cuMemAllocFromPoolAsync(&block, 48 << 20, pool, g_stream));
  DRV(cuMemFreeAsync(blocks[0], g_stream));
  DRV(cuMemPoolDestroy(pool));
  DRV(cuMemFreeAsync(blocks[1], g_stream));
  DRV(cuMemFree(blocks[2]));
}

void Mappings() {
  static unsigned round = 0;
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location.type = round++ % 2 == 0 ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST;
  CUmemGenericAllocationHandle handle = 0, same = 0, retained = 0;
  CUdeviceptr range = 0;
  int descriptor = -1;
  DRV(cuMemCreate(&handle, kMapped, &prop, 0));
  DRV(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  DRV(cuMemImportFromShareableHandle(&same, reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor)),
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  DRV(cuMemAddressReserve(&range, 2 * kMapped, 0, 0, 0));
  DRV(cuMemMap(range, kMapped, 0, handle, 0));
  DRV(cuMemMap(range + kMapped, kMapped, 0, same, 0));
  DRV(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range)));
  for (const auto one : {handle, same, retained}) DRV(cuMemRelease(one));
  DRV(cuMemUnmap(range, 2 * kMapped));
  DRV(cuMemAddressFree(range, 2 * kMapped));
}

// ---- arrays and textures

CUDA_ARRAY3D_DESCRIPTOR ImageDescriptor() {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  descriptor.Width = descriptor.Height = 16;
  descriptor.Format = CU_AD_FORMAT_FLOAT;
  descriptor.NumChannels = 1;
  descriptor.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  return descriptor;
}

void Arrays() {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = ImageDescriptor();
  CUarray array = nullptr, level = nullptr;
  CUmipmappedArray mipmap = nullptr;
  DRV(cuArray3DCreate(&array, &descriptor));
  DRV(cuArrayDestroy(array));
  DRV(cuMipmappedArrayCreate(&mipmap, &descriptor, 3));
  DRV(cuMipmappedArrayGetLevel(&level, mipmap, 1));
  DRV(cuMipmappedArrayDestroy(mipmap));
}

void Textures() {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = ImageDescriptor();
  CUarray array = nullptr;
  DRV(cuArray3DCreate(&array, &descriptor));
  CUDA_RESOURCE_DESC image = {}, linear = {};
  image.resType = CU_RESOURCE_TYPE_ARRAY;
  image.res.array.hArray = array;
  linear.resType = CU_RESOURCE_TYPE_LINEAR;
  linear.res.linear.devPtr = g_memory;
  linear.res.linear.format = CU_AD_FORMAT_FLOAT;
  linear.res.linear.numChannels = 1;
  linear.res.linear.sizeInBytes = kBytes;
  const CUDA_TEXTURE_DESC texture = {};
  for (const CUDA_RESOURCE_DESC* resource : {&image, &linear}) {
    CUtexObject object = 0;
    DRV(cuTexObjectCreate(&object, resource, &texture, nullptr));
    Launch(g_affine, g_stream);
    DRV(cuTexObjectDestroy(object));
  }
  CUsurfObject surface = 0;
  DRV(cuSurfObjectCreate(&surface, &image));
  DRV(cuSurfObjectDestroy(surface));
  DRV(cuArrayDestroy(array));
}

// ---- code

const std::string& Ptx() {
  static const std::string text = AffinePtx("affine", 2);
  return text;
}

void Modules() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr offset = 0;
  DRV(cuModuleLoadData(&module, Ptx().c_str()));
  DRV(cuModuleGetFunction(&function, module, "affine"));
  DRV(cuModuleGetGlobal(&offset, nullptr, module, "offset"));
  const unsigned on = 1;
  DRV(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, offset));
  Launch(function, g_stream);
  DRV(cuModuleUnload(module));
}

void Libraries() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUmodule module = nullptr;
  DRV(cuLibraryLoadData(&library, Ptx().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  DRV(cuLibraryGetKernel(&kernel, library, "affine"));
  DRV(cuLibraryGetModule(&module, library));
  Launch(reinterpret_cast<CUfunction>(kernel), g_stream);
  DRV(cuStreamSynchronize(g_stream));
  DRV(cuLibraryUnload(library));
}

void Links() {
  CUlinkState state = nullptr;
  void* image = nullptr;
  std::size_t bytes = 0;
  DRV(cuLinkCreate(0, nullptr, nullptr, &state));
  DRV(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(Ptx().c_str()), Ptx().size() + 1, "affine.ptx", 0,
                    nullptr, nullptr));
  DRV(cuLinkComplete(state, &image, &bytes));
  DRV(cuLinkDestroy(state));
}

// ---- contexts and threads

/// With what goes with it.
void Contexts() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  CUmodule module = nullptr;
  DRV(cuCtxCreate(&context, nullptr, 0, 0));
  DRV(cuStreamCreate(&stream, 0));
  DRV(cuEventCreate(&event, 0));
  DRV(cuEventRecord(event, stream));
  DRV(cuMemAlloc(&memory, kBytes));
  DRV(cuModuleLoadData(&module, Ptx().c_str()));
  DRV(cuMemsetD8Async(memory, 1, kBytes, CU_STREAM_PER_THREAD));
  DRV(cuCtxDestroy(context));
}

void PrimaryContexts() {
  CUcontext context = nullptr;
  DRV(cuDevicePrimaryCtxRetain(&context, 0));
  for (int i = 0; i < 20; ++i) DRV(cuCtxPushCurrent(context));
  for (int i = 0; i < 20; ++i) DRV(cuCtxPopCurrent(&context));
  DRV(cuDevicePrimaryCtxRelease(0));
}

/// Each with a default stream of its own, and a context on its stack when it ends.
void Threads() {
  std::thread([] {
    DRV(cuCtxSetCurrent(g_context));
    for (int i = 0; i < 20; ++i) DRV(cuCtxPushCurrent(g_context));
    DRV(cuMemsetD8Async(g_memory, 1, 16, CU_STREAM_PER_THREAD));
    Launch(g_affine, CU_STREAM_PER_THREAD);
  }).join();
  Launch(g_affine, nullptr);
}

/// The context goes before the thread that has it.
void ThreadsWithContexts() {
  std::thread([] {
    CUcontext context = nullptr;
    DRV(cuCtxCreate(&context, nullptr, 0, 0));
    DRV(cuCtxPushCurrent(context));
    DRV(cuMemsetD8Async(g_memory, 1, 16, CU_STREAM_PER_THREAD));
    DRV(cuCtxDestroy(context));
  }).join();
}

const Pair kPairs[] = {
    {"streams", 100, [] { Streams(CU_STREAM_DEFAULT); }},
    {"non-blocking streams", 100, [] { Streams(CU_STREAM_NON_BLOCKING); }},
    {"events", 100, Events},
    {"host functions", 20, HostFunctions},
    {"graphs", 100, Graphs},
    {"executable graphs", 50, GraphExecs},
    {"clones", 50, Clones},
    {"graph nodes", 100, GraphNodes},
    {"conditional graphs", 50, ConditionalGraphs},
    {"graph memory", 50, GraphMemory},
    {"captures", 50, Captures},
    {"user objects", 100, UserObjects},
    {"allocations", 50, Allocations},
    {"managed memory", 50, ManagedMemory},
    {"host memory", 50, HostMemory},
    {"stream-ordered memory", 100, StreamOrderedMemory},
    {"pools", 20, Pools},
    {"mappings", 20, Mappings},
    {"arrays", 20, Arrays},
    {"textures", 50, Textures},
    {"modules", 10, Modules},
    {"libraries", 10, Libraries},
    {"links", 20, Links},
    {"contexts", 10, Contexts},
    {"primary contexts", 100, PrimaryContexts},
    {"threads", 20, Threads},
    {"threads with contexts", 20, ThreadsWithContexts},
};

/// The first rounds fill what is kept for later. What is lost in each round is lost in all that follow; what the
/// library's threads keep for a while, and what the C library's count as used, is less again in one of some turns. The
/// device is waited for again and again: a thread that runs far ahead of it has as many objects at once as the
/// machine's load allows, and some of their memory is kept.
void Run(const Pair& pair, long rounds) {
  constexpr int kTurns = 15, kAhead = 64;
  const long half = std::max(rounds * static_cast<long>(pair.share) / 200, 150l);
  const auto turn = [&] {
    for (long i = 0; i < half; ++i) {
      pair.once();
      if (i % kAhead == kAhead - 1) DRV(cuCtxSynchronize());
    }
    return Measure();
  };
  const auto growth = [](std::size_t from, std::size_t to) { return static_cast<long>(to) - static_cast<long>(from); };
  long heap = 0, device = 0;
  Use before = turn();
  for (int i = 0; i < kTurns; ++i) {
    const Use after = turn();
    heap = growth(before.heap, after.heap);
    device = growth(before.device, after.device);
    if (heap < 40'000 && device <= 0) break;
    before = after;
  }
  std::printf("%-24s %7ld rounds: heap %+8ld, device %+8ld\n", pair.name, half, heap, device);
  Note(heap < 40'000, pair.name, half, static_cast<double>(heap), 0);
  Note(device <= 0, pair.name, half, static_cast<double>(device), 0);
}

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::atol(argv[1]) : 10'000;
  DRV(cuInit(0));
  DRV(cuDevicePrimaryCtxRetain(&g_context, 0));
  DRV(cuCtxSetCurrent(g_context));
  DRV(cuStreamCreate(&g_stream, 0));
  DRV(cuMemAlloc(&g_memory, kBytes));
  CUmodule module = nullptr;
  DRV(cuModuleLoadData(&module, Ptx().c_str()));
  DRV(cuModuleGetFunction(&g_affine, module, "affine"));
  for (const Pair& pair : kPairs) {
    if (argc <= 2 || std::string(argv[2]) == pair.name) Run(pair, rounds);
  }
  return Verdict();
}
