// Wrong launches: the exact error of each, and that none is sticky. Configurations that no device has are invalid
// values to the driver, and the runtime passes that on (an H200 of driver 580; cudaErrorInvalidConfiguration is the
// runtime's own word for some of them).
#include "app.h"

__global__ void Nothing(int* out) {
  if (out) *out = 1;
}
__global__ void __launch_bounds__(128) Small(int* out) { out[threadIdx.x] = 1; }
__global__ void Shared() {
  extern __shared__ int s[];
  s[threadIdx.x] = 0;
}
void Expect(const char* what, cudaError_t want) {
  Error(what, cudaGetLastError(), want);
  Error("not sticky", cudaDeviceSynchronize(), cudaSuccess);
}

int main() {
  Buffer<int> out(1024);
  int* p = out;
  Nothing<<<1, 1025>>>(p), Expect("1025 threads", cudaErrorInvalidValue);
  Nothing<<<1, dim3(32, 32, 2)>>>(p), Expect("2048 threads", cudaErrorInvalidValue);
  Nothing<<<1, dim3(1, 1, 65)>>>(p), Expect("block z 65", cudaErrorInvalidValue);
  Nothing<<<0, 32>>>(p), Expect("empty grid", cudaErrorInvalidValue);
  Nothing<<<1, 0>>>(p), Expect("empty block", cudaErrorInvalidValue);
  Nothing<<<dim3(1, 65536), 32>>>(p), Expect("grid y 65536", cudaErrorInvalidValue);
  Nothing<<<dim3(1, 1, 65536), 32>>>(p), Expect("grid z 65536", cudaErrorInvalidValue);
  Small<<<1, 256>>>(p), Expect("over the launch bound", cudaErrorInvalidValue);
  Shared<<<1, 32, 1 << 20>>>(), Expect("too much shared memory", cudaErrorInvalidValue);
  int stranger = 0;
  Error("host function", cudaLaunchKernel(&stranger, dim3(1), dim3(1), nullptr, 0, nullptr),
        cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  Error("null pointer", cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  Error("peek", cudaPeekAtLastError(), cudaErrorInvalidValue);
  Error("get", cudaGetLastError(), cudaErrorInvalidValue);
  Error("cleared", cudaGetLastError(), cudaSuccess);
  Error("device", cudaSetDevice(1000), cudaErrorInvalidDevice);
  cudaGetLastError();
  Error("memcpy direction", cudaMemcpy(p, p, 4, static_cast<cudaMemcpyKind>(77)), cudaErrorInvalidMemcpyDirection);
  cudaGetLastError();
  Nothing<<<1, 32>>>(p);
  CU_LAUNCHED();
  Same("still works", 0, out.Read()[0], 1);
  return Verdict();
}
