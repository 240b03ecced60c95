// Waits for kernels by looking at what they write, while the loader holds its lock: in a constructor and a destructor
// of a library. Each launches kernels that have not been compiled yet; one of them fails, and its error is asked for.
#include "loader_lock.h"

namespace {

template <int kNumber>
__global__ void Store(volatile int* out) {
  __shared__ int shared[64];
  shared[threadIdx.x] = kNumber;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = shared[63];
}

bool WaitFor(volatile int* place, int wanted) {
  for (int i = 0; i < 20'000; ++i) {
    if (*place == wanted) return true;
    usleep(1000);
  }
  return false;
}

template <int kNumber>
void Poll(const char* where) {
  int* flags = nullptr;
  if (cudaMallocHost(&flags, 64 * sizeof(int)) != cudaSuccess) return Report(where, "cudaMallocHost");
  for (int i = 0; i < 64; ++i) flags[i] = 0;
  cudaStream_t streams[4];
  for (int i = 0; i < 4; ++i) {
    if (cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) != cudaSuccess)
      return Report(where, "cudaStreamCreate");
    Store<kNumber><<<4, 64, 0, streams[i]>>>(flags + 4 * i);
  }
  for (int i = 0; i < 16; ++i)
    if (!WaitFor(flags + i, kNumber)) return Report(where, "kernels");
  static volatile int called;
  called = 0;
  cudaLaunchHostFunc(
      streams[0], [](void*) { called = 1; }, nullptr);
  if (!WaitFor(&called, 1)) return Report(where, "a host function");
  for (cudaStream_t stream : streams) {
    while (cudaStreamQuery(stream) == cudaErrorNotReady) usleep(1000);
    cudaStreamDestroy(stream);
  }
  cudaFreeHost(flags);
  Report(where, nullptr);
}

struct Constructed {
  Constructed() { Poll<3>("constructor"); }
  ~Constructed() { Poll<5>("destructor"); }
} g_constructed;

}  // namespace

/// Called by the program with the loader's lock held by another library's constructor.
extern "C" void PollFault() {
  cudaStream_t stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
    return Report("fault", "cudaStreamCreate");
  Store<7><<<1, 64, 0, stream>>>(reinterpret_cast<int*>(64));
  for (int i = 0; i < 20'000; ++i) {
    if (cudaStreamQuery(stream) == cudaErrorIllegalAddress) return Report("fault", nullptr);
    usleep(1000);
  }
  Report("fault", "no error came");
}
