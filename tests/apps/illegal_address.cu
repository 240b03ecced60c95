// A store out of every allocation: error 700, sticky for the process. Each case runs in a child process of its own.
#include "cases.h"

__global__ void Store(int* p, long index) { p[index] = 1; }
__global__ void Load(const int* p, int* out) { *out = *p; }
__global__ void Misaligned(char* p) { *reinterpret_cast<int*>(p + 1) = 5; }
__global__ void Trap(int n) {
  if (threadIdx.x == n) asm volatile("trap;");
}
__device__ __noinline__ int Deep(volatile int* v, int n) {
  volatile char frame[256];
  frame[n & 255] = n;
  return *v < 0 ? n : Deep(v, n + 1) + frame[(n + 1) & 255];
}
__global__ void Overflow(int* out) { *out = Deep(out, 0); }
__global__ void SharedOutside(int* out, int index) {
  __shared__ int s[16];
  s[threadIdx.x % 16] = 1;
  __syncthreads();
  *out = s[index];
}
int Case(int which) {
  int *p = nullptr, host = 0, *q = nullptr;
  CU(cudaMalloc(&p, 1024));
  CU(cudaMalloc(&q, 1024));
  CU(cudaMemset(q, 0, 1024));
  cudaError_t want = cudaErrorIllegalAddress;
  switch (which) {
    case 0: Store<<<2, 33>>>(p, 1L << 34); break;
    case 1: Store<<<1, 1>>>(nullptr, 0); break;
    case 2: Load<<<1, 1>>>(&host, p); break;  // plain host memory
    case 3: Misaligned<<<1, 40>>>(reinterpret_cast<char*>(p)), want = cudaErrorMisalignedAddress; break;
    case 4: Trap<<<3, 64>>>(41), want = cudaErrorLaunchFailure; break;
    case 5: Overflow<<<1, 1>>>(q), want = cudaErrorLaunchFailure; break;
    case 6: SharedOutside<<<1, 32>>>(p, 1 << 26); break;
    default: return 0;
  }
  bool good = Error("launch", cudaGetLastError(), cudaSuccess);
  const cudaError_t got = cudaDeviceSynchronize();
  // Stack overflow and wild shared addresses are reported in more than one way by real devices; an H200 calls a load
  // from beyond the 16 MiB of shared addresses an illegal instruction.
  const bool accepted = got == want ||
                        (which == 5 && (got == cudaErrorIllegalAddress || got == cudaErrorLaunchFailure)) ||
                        (which == 6 && (got == cudaErrorLaunchFailure || got == cudaErrorIllegalInstruction));
  if (!accepted) std::printf("case %d: %s\n", which, cudaGetErrorString(got));
  good &= accepted;
  void* more = nullptr;
  good &= Error("sticky", cudaMalloc(&more, 8), got);
  good &= Error("sticky synchronize", cudaDeviceSynchronize(), got);
  good &= Error("sticky get", cudaGetLastError(), got);
  return good ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc > 1) return Case(std::atoi(argv[1]));
  RunCases(argv[0], 7);
  return Verdict();
}
