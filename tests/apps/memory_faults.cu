// Kernels that touch what they must not, in every way there is: each ends with the right error, sticky, in a process
// that lives on. Each case runs in a child process of its own.
#include <mma.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "cases.h"
#include "driver.h"

__global__ void StoreAt(int* p, long offset) { p[offset + threadIdx.x] = 1; }
__global__ void LoadAt(const int* p, long offset, int* out) { out[threadIdx.x] = p[offset + threadIdx.x]; }
__global__ void Gather(const int* p, const long* index, int* out) { out[threadIdx.x] = p[index[threadIdx.x]]; }
__global__ void Scatter(short* p, const long* index) {
  if (threadIdx.x % 3 != 2) p[index[threadIdx.x]] = 3;
}
__global__ void AtomicAt(int* p, long bytes) {
  atomicAdd(reinterpret_cast<int*>(reinterpret_cast<char*>(p) + bytes), static_cast<int>(threadIdx.x));
}
__global__ void WideAt(char* p, long bytes) { *reinterpret_cast<int4*>(p + bytes) = make_int4(1, 2, 3, 4); }
__global__ void ShadowOfShared(int* out, unsigned offset) {
  __shared__ int s[32];
  s[threadIdx.x] = 1;
  __syncthreads();
  atomicAdd(&s[offset + threadIdx.x], 1);
  __syncthreads();
  *out = s[0];
}
__global__ void LocalAt(int* out, long index) {
  int local[64];
  for (int i = 0; i < 64; ++i) local[i] = i * *out;
  local[index] = 7;
  *out = local[(index + *out) & 63];
}
__device__ __noinline__ int Deep(volatile int* v, int n) {
  volatile char frame[1000];
  frame[n % 1000] = static_cast<char>(n);
  __syncthreads();
  return *v < 0 ? n : Deep(v, n + 1) + frame[(n + 1) % 1000];
}
__global__ void DeepWithBarriers(int* out) { *out = Deep(out, 0); }
__device__ __noinline__ int Plain(int n) { return n > 1 << 30 ? 0 : n * 3 + 1; }
__device__ __noinline__ int DeepPlain(volatile int* v, int n) { return *v < 0 ? n : DeepPlain(v, n + 1) + Plain(n); }
__global__ void DeepWithoutFrame(int* out) { *out = DeepPlain(out, 0); }
__global__ void Alloca(int* out, size_t bytes) {
  char* p = static_cast<char*>(alloca(bytes));
  for (size_t i = 0; i < bytes; i += 512) p[i] = 1;
  *out = p[bytes / 2];
}
__global__ void BadCall(int* out, unsigned long target) {
  out[threadIdx.x] = reinterpret_cast<int (*)(int)>(target)(3);
}
__global__ void BadFormat(const char* text) { printf("%s %d\n", text, 3); }
__global__ void BadFree(char* p) { free(p + 24); }
__global__ void Texture(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, threadIdx.x, 0);
}
__global__ void Surface(cudaSurfaceObject_t surface) { surf2Dwrite(1.0f, surface, threadIdx.x * 4, 0); }
__global__ void Matrix(const half* p, float* out) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  load_matrix_sync(a, p, 16);
  load_matrix_sync(b, p, 16);
  mma_sync(c, a, b, c);
  store_matrix_sync(out, c, 16, mem_row_major);
}
__global__ void AsyncCopy(const int* from) {
  __shared__ int s[128];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&s[4 * threadIdx.x]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\ncp.async.wait_all;" ::"r"(to), "l"(from + 4 * threadIdx.x));
}
__global__ void Generic(int* out, long distance) {
  __shared__ int s[32];
  s[threadIdx.x] = 1;
  int* p = distance > 0 ? s + distance : out;
  *p = 5;
}
// Divisions that trap on a processor and do not on a GPU.
__global__ void Divide(int* out, int a, int b, long c, long d) {
  out[0] = a / b;
  out[1] = a % b;
  out[2] = static_cast<int>((c / d) >> 32);
  out[3] = static_cast<int>(c % d);
  out[4] = a / (b + 1) != 0;
  out[5] = c / (d + 1) != 0;
}
void* LaunchOnly(void* p) {
  StoreAt<<<1, 1>>>(static_cast<int*>(p), 0);
  return reinterpret_cast<void*>(static_cast<long>(cudaDeviceSynchronize()));
}

constexpr int kCases = 32;
int Case(int which) {
  int *p = nullptr, *keep = nullptr, host[64] = {};
  CU(cudaMalloc(&p, 4096));
  CU(cudaMalloc(&keep, 4096));
  // A driver may keep freed memory mapped, so nothing is where nothing ever was: in a range that is reserved only.
  CUdeviceptr reserved = 0;
  DRV(cuMemAddressReserve(&reserved, 8 << 20, 0, 0, 0));
  int* const gone = reinterpret_cast<int*>(reserved);
  CU(cudaMemset(p, 0, 4096));
  CU(cudaMemset(keep, 0, 4096));
  std::vector<long> wild(64);
  for (int i = 0; i < 64; ++i) wild[i] = i;
  wild[37] = (reinterpret_cast<char*>(gone) - reinterpret_cast<char*>(p)) / 4 + 1000000;
  Buffer<long> index(wild);
  std::vector<cudaError_t> want = {cudaErrorIllegalAddress};
  switch (which) {
    case 0: StoreAt<<<1, 32>>>(gone, 0); break;
    case 1: LoadAt<<<1, 32>>>(gone, 1000, p); break;
    case 2: Gather<<<1, 64>>>(p, index, keep); break;
    case 3: Scatter<<<1, 64>>>(reinterpret_cast<short*>(p), index); break;
    case 4: AtomicAt<<<1, 32>>>(gone, 4096); break;
    case 5: AtomicAt<<<1, 32>>>(p, 2), want = {cudaErrorMisalignedAddress}; break;
    case 6: WideAt<<<1, 1>>>(reinterpret_cast<char*>(p), 8), want = {cudaErrorMisalignedAddress}; break;
    case 7: WideAt<<<1, 33>>>(reinterpret_cast<char*>(gone), 16); break;
    case 8: StoreAt<<<4, 128>>>(host, 0); break;
    case 9: LoadAt<<<1, 1>>>(nullptr, 16, p); break;
    case 10: StoreAt<<<1, 1>>>(reinterpret_cast<int*>(~0ul - 3), 0); break;
    case 11: ShadowOfShared<<<1, 32>>>(p, 1u << 20); break;
    case 12:  // local addresses have fewer bits on some devices
      LocalAt<<<1, 32>>>(p, 1l << 40), want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaSuccess};
      break;
    case 13: LocalAt<<<1, 32>>>(p, 1 << 20), want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure}; break;
    case 14: DeepWithBarriers<<<2, 64>>>(p), want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure}; break;
    case 15: DeepWithoutFrame<<<2, 64>>>(p), want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure}; break;
    case 16: Alloca<<<1, 32>>>(p, 64 << 20), want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure}; break;
    case 17: BadCall<<<1, 32>>>(p, 0x123456789), want = {cudaErrorInvalidPc}; break;
    case 18: BadCall<<<1, 32>>>(p, 0), want = {cudaErrorInvalidPc}; break;
    case 19: BadFormat<<<1, 1>>>(reinterpret_cast<char*>(gone)), want = {cudaErrorIllegalAddress, cudaSuccess}; break;
    case 20:
      BadFree<<<1, 1>>>(reinterpret_cast<char*>(p)), want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure};
      break;
    case 21:
      Texture<<<1, 32>>>(0x77777, reinterpret_cast<float*>(p)),
          want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure};
      break;
    case 22:
      Texture<<<1, 32>>>(reinterpret_cast<cudaTextureObject_t>(gone), reinterpret_cast<float*>(p)),
          want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure};
      break;
    case 23: Surface<<<1, 32>>>(0x99999), want = {cudaErrorIllegalAddress, cudaErrorLaunchFailure}; break;
    case 24: Matrix<<<1, 32>>>(reinterpret_cast<half*>(gone), reinterpret_cast<float*>(p)); break;
    case 25: Matrix<<<1, 32>>>(reinterpret_cast<half*>(p), reinterpret_cast<float*>(gone)); break;
    case 26: AsyncCopy<<<1, 32>>>(gone); break;
    case 27: Generic<<<1, 32>>>(p, 1l << 38); break;
    case 28: {
      Divide<<<1, 1>>>(p, -2147483647 - 1, -1, -9223372036854775807l - 1, -1), want = {cudaSuccess};
      break;
    }
    case 29: {  // a thread that blocks all signals
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      StoreAt<<<1, 1>>>(gone, 5);
      break;
    }
    case 30: {  // launched by one thread, awaited by another
      pthread_t thread;
      void* result = nullptr;
      pthread_create(&thread, nullptr, &LaunchOnly, gone);
      pthread_join(thread, &result);
      if (reinterpret_cast<long>(result) != cudaErrorIllegalAddress) return 1;
      break;
    }
    case 31: {  // the kernel ends before anybody waits
      cudaStream_t stream;
      CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      StoreAt<<<3, 1, 0, stream>>>(gone, 77);
      while (cudaStreamQuery(stream) == cudaErrorNotReady) usleep(1000);
      break;
    }
    default: return 0;
  }
  cudaGetLastError();
  const cudaError_t got = cudaDeviceSynchronize();
  bool good = false;
  for (const cudaError_t accepted : want) good |= got == accepted;
  if (!good) std::printf("case %d: %s\n", which, cudaGetErrorString(got));
  if (got == cudaSuccess) return good ? 0 : 1;
  void* more = nullptr;
  good &= Error("sticky", cudaMalloc(&more, 8), got);
  StoreAt<<<1, 1>>>(keep, 0);
  good &= Error("sticky launch", cudaGetLastError(), got);
  good &= Error("sticky copy", cudaMemcpy(host, keep, 4, cudaMemcpyDeviceToHost), got);
  return good ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    const int result = Case(std::atoi(argv[1]));
    std::fflush(stdout);
    _exit(result);
  }
  RunCases(argv[0], kCases);
  return Verdict();
}
