// What a driver answers to calls whose answer its manual leaves open: "name code [value]" lines. Compared with the
// virtual GPU's answers.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "driver.h"

namespace {

#define DRIVER(name) const decltype(&name) name##_ = Find<decltype(&name)>(#name)
#define DRIVER_V2(name) const decltype(&name) name##_ = Find<decltype(&name)>(#name "_v2")

void Say(const char* what, CUresult status) {
  std::printf("%s %d\n", what, static_cast<int>(status)), std::fflush(stdout);
}
/// With what the call stored.
template <class T>
void Say(const char* what, CUresult status, const T& value) {
  std::printf("%s %d %lld\n", what, static_cast<int>(status), static_cast<long long>(value)), std::fflush(stdout);
}

constexpr char kPtx[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing(.param .u32 a, .param .u64 b) { ret; }
)";

struct Driver {
  DRIVER(cuInit);
  DRIVER_V2(cuDevicePrimaryCtxRelease);
  DRIVER(cuDevicePrimaryCtxRetain);
  DRIVER(cuCtxSetCurrent);
  DRIVER(cuStreamCreate);
  DRIVER_V2(cuStreamDestroy);
  DRIVER(cuStreamSynchronize);
  DRIVER(cuStreamQuery);
  DRIVER(cuStreamWaitEvent);
  DRIVER(cuStreamIsCapturing);
  DRIVER_V2(cuStreamBeginCapture);
  DRIVER(cuStreamEndCapture);
  DRIVER(cuEventCreate);
  DRIVER(cuEventRecord);
  DRIVER(cuEventQuery);
  DRIVER(cuEventSynchronize);
  DRIVER(cuMemAllocAsync);
  DRIVER(cuMemFreeAsync);
  DRIVER_V2(cuMemAlloc);
  DRIVER_V2(cuMemcpyHtoD);
  DRIVER_V2(cuMemcpyDtoH);
  DRIVER_V2(cuMemcpy2DAsync);
  DRIVER_V2(cuMemcpy2D);
  DRIVER_V2(cuMemcpy2DUnaligned);
  DRIVER_V2(cuMemHostRegister);
  DRIVER(cuMemHostUnregister);
  DRIVER_V2(cuArrayCreate);
  DRIVER(cuModuleLoadData);
  DRIVER(cuModuleGetFunction);
  DRIVER(cuFuncGetName);
  DRIVER(cuFuncGetParamInfo);
  DRIVER(cuLibraryLoadData);
  DRIVER(cuLibraryGetKernel);
  DRIVER(cuKernelGetName);
  DRIVER(cuKernelGetParamInfo);
  DRIVER(cuKernelGetFunction);
  DRIVER(cuGraphCreate);
  DRIVER(cuGraphDestroy);
  DRIVER(cuGraphDestroyNode);
  DRIVER(cuGraphAddMemAllocNode);
  DRIVER(cuGraphAddMemFreeNode);
  DRIVER(cuGraphAddEmptyNode);
  DRIVER(cuGraphConditionalHandleCreate);
  DRIVER(cuDeviceGetDefaultMemPool);
  DRIVER(cuMemPoolGetAttribute);
};

void WithoutContext(const Driver& d, CUcontext context) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  d.cuStreamCreate_(&stream, CU_STREAM_NON_BLOCKING);
  d.cuEventCreate_(&event, CU_EVENT_DISABLE_TIMING);
  d.cuCtxSetCurrent_(nullptr);
  Say("no_context.event_record", d.cuEventRecord_(event, stream));
  Say("no_context.event_record_null_stream", d.cuEventRecord_(event, nullptr));
  Say("no_context.event_query", d.cuEventQuery_(event));
  Say("no_context.event_synchronize", d.cuEventSynchronize_(event));
  Say("no_context.stream_wait_event", d.cuStreamWaitEvent_(stream, event, 0));
  Say("no_context.stream_synchronize", d.cuStreamSynchronize_(stream));
  Say("no_context.stream_synchronize_null", d.cuStreamSynchronize_(nullptr));
  Say("no_context.stream_query", d.cuStreamQuery_(stream));
  CUdeviceptr memory = 0;
  Say("no_context.mem_alloc_async", d.cuMemAllocAsync_(&memory, 64, stream));
  if (memory != 0) Say("no_context.mem_free_async", d.cuMemFreeAsync_(memory, stream));
  Say("no_context.stream_destroy", d.cuStreamDestroy_(stream));
  Say("no_context.library_load", d.cuLibraryLoadData_(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  if (library != nullptr) {
    std::size_t offset = 0, size = 0;
    Say("no_context.library_get_kernel", d.cuLibraryGetKernel_(&kernel, library, "nothing"));
    Say("no_context.kernel_param_info", d.cuKernelGetParamInfo_(kernel, 1, &offset, &size), offset);
    const char* name = nullptr;
    Say("no_context.kernel_get_name", d.cuKernelGetName_(&name, kernel));
  }
  d.cuCtxSetCurrent_(context);
}

void Names(const Driver& d) {
  const char* name = nullptr;
  Say("kernel_get_name_of_null", d.cuKernelGetName_(&name, nullptr));
  Say("func_get_name_of_null", d.cuFuncGetName_(&name, nullptr));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  Say("module_load", d.cuModuleLoadData_(&module, kPtx));
  d.cuModuleGetFunction_(&function, module, "nothing");
  std::size_t offset = 0, size = 0;
  Say("func_param_info_1", d.cuFuncGetParamInfo_(function, 1, &offset, &size), offset);
  Say("func_param_info_2", d.cuFuncGetParamInfo_(function, 2, &offset, &size));
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR empty = {};
  empty.Format = CU_AD_FORMAT_FLOAT, empty.NumChannels = 1;
  Say("array_create_empty", d.cuArrayCreate_(&array, &empty));
}

void Memory(const Driver& d, CUdevice device) {
  CUstream stream = nullptr;
  d.cuStreamCreate_(&stream, CU_STREAM_NON_BLOCKING);
  CUdeviceptr memory = 0;
  memory = 1;
  Say("mem_alloc_async_0", d.cuMemAllocAsync_(&memory, 0, stream), memory);
  // A pool's use: a block freed, and a smaller one that may take its place.
  CUmemoryPool pool = nullptr;
  d.cuDeviceGetDefaultMemPool_(&pool, device);
  const auto used = [&](const char* what) {
    std::uint64_t now = 0;
    d.cuStreamSynchronize_(stream);
    Say(what, d.cuMemPoolGetAttribute_(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &now), now);
  };
  d.cuMemAllocAsync_(&memory, 1024, stream);
  used("pool_used.1024");
  d.cuMemFreeAsync_(memory, stream);
  used("pool_used.freed");
  d.cuMemAllocAsync_(&memory, 512, stream);
  used("pool_used.512_after_1024");
  CUdeviceptr second = 0;
  d.cuMemAllocAsync_(&second, 100, stream);
  used("pool_used.512_and_100");
  std::vector<char> host(1 << 20);
  char* aligned =
      reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(host.data()) + 4095) & ~std::uintptr_t{4095});
  Say("host_register", d.cuMemHostRegister_(aligned, 65536, 0));
  Say("host_unregister_inside", d.cuMemHostUnregister_(aligned + 4096));
  Say("host_unregister", d.cuMemHostUnregister_(aligned));
}

/// Copies of rectangles between device memory whose offset in a row is beyond the pitch.
void Rectangles(const Driver& d) {
  CUdeviceptr from = 0, to = 0;
  d.cuMemAlloc_(&from, 1 << 16);
  d.cuMemAlloc_(&to, 1 << 16);
  std::vector<unsigned char> host(1 << 16), got(1 << 16);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i * 7 + i / 256);
  d.cuMemcpyHtoD_(from, host.data(), host.size());
  const auto run = [&](const char* what, std::size_t from_x, std::size_t from_pitch, std::size_t to_x,
                       std::size_t to_pitch, std::size_t width, std::size_t height, int form) {
    std::vector<unsigned char> zero(1 << 16);
    d.cuMemcpyHtoD_(to, zero.data(), zero.size());
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from, copy.srcXInBytes = from_x, copy.srcPitch = from_pitch;
    copy.dstDevice = to, copy.dstXInBytes = to_x, copy.dstPitch = to_pitch;
    copy.WidthInBytes = width, copy.Height = height;
    const CUresult status = form == 0   ? d.cuMemcpy2DAsync_(&copy, nullptr)
                            : form == 1 ? d.cuMemcpy2D_(&copy)
                                        : d.cuMemcpy2DUnaligned_(&copy);
    d.cuStreamSynchronize_(nullptr);
    d.cuMemcpyDtoH_(got.data(), to, got.size());
    long long right = status == CUDA_SUCCESS;
    for (std::size_t y = 0; y < height && right; ++y) {
      right = std::memcmp(&got[y * to_pitch + to_x], &host[y * from_pitch + from_x], width) == 0;
    }
    Say(what, status, right);
  };
  for (int form = 0; form < 3; ++form) {
    run(form == 0 ? "rectangle.async" : form == 1 ? "rectangle" : "rectangle.unaligned", 16, 256, 32, 128, 64, 8, form);
    run(form == 0   ? "rectangle.async.from_beyond"
        : form == 1 ? "rectangle.from_beyond"
                    : "rectangle.unaligned.from_beyond",
        320, 256, 0, 128, 64, 8, form);
    run(form == 0   ? "rectangle.async.to_beyond"
        : form == 1 ? "rectangle.to_beyond"
                    : "rectangle.unaligned.to_beyond",
        0, 256, 160, 128, 64, 8, form);
    run(form == 0   ? "rectangle.async.across"
        : form == 1 ? "rectangle.across"
                    : "rectangle.unaligned.across",
        224, 256, 0, 128, 64, 8, form);
    run(form == 0   ? "rectangle.async.one_row"
        : form == 1 ? "rectangle.one_row"
                    : "rectangle.unaligned.one_row",
        4096, 64, 8192, 64, 64, 1, form);
  }
}

void Graphs(const Driver& d, CUdevice device) {
  CUgraph graph = nullptr, other = nullptr;
  d.cuGraphCreate_(&graph, 0);
  d.cuGraphCreate_(&other, 0);
  CUgraphNode allocation = nullptr, release = nullptr, empty = nullptr, conditional = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  parameters.bytesize = 4096;
  Say("graph.add_mem_alloc", d.cuGraphAddMemAllocNode_(&allocation, graph, nullptr, 0, &parameters));
  Say("graph.add_empty", d.cuGraphAddEmptyNode_(&empty, graph, &allocation, 1));
  Say("graph.add_mem_free", d.cuGraphAddMemFreeNode_(&release, graph, &empty, 1, parameters.dptr));
  Say("graph.destroy_empty_node_of_graph_with_memory", d.cuGraphDestroyNode_(empty));
  Say("graph.destroy_mem_free_node", d.cuGraphDestroyNode_(release));
  CUgraphConditionalHandle handle = 0;
  CUcontext context = nullptr;
  d.cuDevicePrimaryCtxRetain_(&context, device);
  Say("graph.conditional_handle", d.cuGraphConditionalHandleCreate_(&handle, other, context, 0, 0));
  const auto add =
      Find<CUresult (*)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraphNodeParams*)>("cuGraphAddNode");
  CUgraph third = nullptr;
  d.cuGraphCreate_(&third, 0);
  CUgraphNodeParams node = {};
  node.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  node.conditional.handle = handle;
  node.conditional.type = CU_GRAPH_COND_TYPE_IF;
  node.conditional.size = 1;
  node.conditional.ctx = context;
  Say("graph.conditional_with_handle_of_other_graph", add(&conditional, third, nullptr, 0, &node));
  // A blocking stream captures: what is asked of the NULL stream.
  CUstream blocking = nullptr;
  d.cuStreamCreate_(&blocking, CU_STREAM_DEFAULT);
  d.cuStreamBeginCapture_(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  Say("capture.null_stream_is_capturing", d.cuStreamIsCapturing_(nullptr, &status), status);
  CUgraph captured = nullptr;
  Say("capture.end", d.cuStreamEndCapture_(blocking, &captured));
}

}  // namespace

int main() {
  const Driver driver;
  CUcontext context = nullptr;
  if (driver.cuInit_(0) != CUDA_SUCCESS) return std::fprintf(stderr, "cuInit failed\n"), 1;
  driver.cuDevicePrimaryCtxRetain_(&context, 0);
  driver.cuCtxSetCurrent_(context);
  Names(driver);
  Memory(driver, 0);
  Rectangles(driver);
  Graphs(driver, 0);
  WithoutContext(driver, context);
}
