// Errors of kernels, and then an end of the process of one kind or another.
// usage: memcheck_ends ERROR END
// ERROR: none, write, unrolled, assert, trap, deadlock, surface, call; late, endless: of a kernel that still runs at
// the end END: return, _exit, quick_exit, _Exit, abort, throw, signal
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

__global__ void Write(int* out) { out[threadIdx.x] = 1; }
/// Without line information: 16 instructions that a line of the source has become, and one of another.
__global__ void Unrolled(int* out, int* other) {
#pragma unroll
  for (int i = 0; i < 16; ++i) out[40 + i * 3 + threadIdx.x] = i;
  other[40] = 1;
}
__global__ void Assert(int* out) { assert(out == nullptr); }
__global__ void Trap() { __trap(); }
__global__ void Deadlock() {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
}
__global__ void Surface(cudaSurfaceObject_t surface) {
  surf2Dwrite(1, surface, 4 * (int)threadIdx.x, 100, cudaBoundaryModeTrap);
}

/// Writes behind the memory after 300 ms, and ends then or not.
constexpr char kLate[] = R"(.version 7.5
.target sm_75
.address_size 64
.visible .entry late(.param .u64 out, .param .u32 ends)
{
  .reg .b64 %rd<4>; .reg .b32 %r<3>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [ends];
  mov.u64 %rd2, %globaltimer;
WAIT:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd3, %rd3, %rd2;
  setp.lt.u64 %p, %rd3, 300000000;
  @%p bra WAIT;
  st.global.u32 [%rd1+160], %r1;
STAY:
  ld.volatile.global.u32 %r2, [%rd1];
  setp.ne.u32 %p, %r2, %r1;
  @!%p ret;
  bra STAY;
})";

/// By the driver interface alone: exit handlers of the runtime wait for kernels.
void LaunchOnly(unsigned ends) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction late = nullptr;
  CUdeviceptr memory = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS ||
      cuModuleLoadData(&module, kLate) != CUDA_SUCCESS || cuModuleGetFunction(&late, module, "late") != CUDA_SUCCESS ||
      cuMemAlloc(&memory, 4 * 40) != CUDA_SUCCESS || cuMemsetD32(memory, 1, 40) != CUDA_SUCCESS)
    std::abort();
  void* arguments[] = {&memory, &ends};
  if (cuLaunchKernel(late, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) != CUDA_SUCCESS) std::abort();
}

void MakeError(const std::string& error) {
  if (error == "late" || error == "endless") return LaunchOnly(error == "late" ? 1 : 0);
  int* memory = nullptr;
  cudaMalloc(&memory, 4 * 40);
  if (error == "none") Write<<<1, 40>>>(memory);
  else if (error == "write") Write<<<1, 41>>>(memory);
  else if (error == "unrolled") {
    int* other = nullptr;
    cudaMalloc(&other, 4 * 40);
    Unrolled<<<1, 2>>>(memory, other);
  } else if (error == "assert") Assert<<<1, 1>>>(memory);
  else if (error == "trap") Trap<<<1, 1>>>();
  else if (error == "deadlock") Deadlock<<<1, 32>>>();
  else if (error == "call") Write<<<1, 4096>>>(memory);
  else if (error == "surface") {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    cudaArray_t array = nullptr;
    cudaMallocArray(&array, &format, 32, 4, cudaArraySurfaceLoadStore);
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface = 0;
    cudaCreateSurfaceObject(&surface, &resource);
    Surface<<<1, 32>>>(surface);
  }
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  MakeError(argc > 1 ? argv[1] : "none");
  const std::string end = argc > 2 ? argv[2] : "return";
  if (end == "_exit") _exit(0);
  if (end == "quick_exit") std::quick_exit(0);
  if (end == "_Exit") std::_Exit(0);
  if (end == "abort") std::abort();
  if (end == "throw") throw std::runtime_error("an end");
  if (end == "signal") std::raise(SIGSEGV);
  return 0;
}
