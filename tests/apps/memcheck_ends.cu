// Errors of kernels, and then an end of the process of one kind or another.
// usage: memcheck_ends ERROR END
// ERROR: none, write, unrolled, assert, trap, deadlock, surface, call
// END: return, _exit, quick_exit, _Exit, abort, throw, signal
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

void MakeError(const std::string& error) {
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
