// Kernels that do not end by themselves, for tests of the broker. BROKER_KERNELS says which:
//   compute, poll, barriers  one that runs for ever: without a wait, at a word that nobody writes, from barrier to
//                            barrier
//   N                        N kernels in streams of their own, each of which ends when all of them have begun
// Says what the wait for them answers, and what a call answers behind it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

// With `end` 1 none of these ends, which the compiler does not know.
__global__ void Compute(unsigned* value, unsigned end) {
  unsigned v = *value;
  while (v != end) v = v * 4 + 2;
  *value = v;
}

__global__ void Poll(volatile unsigned* value, unsigned end) {
  while (*value != end) {
  }
}

__global__ void Barriers(unsigned* value, unsigned end) {
  __shared__ unsigned rounds;
  if (threadIdx.x == 0) rounds = 2;
  __syncthreads();
  while (rounds != end) {
    __syncthreads();
    if (threadIdx.x == 0) rounds += 2;
    __syncthreads();
  }
  *value = rounds;
}

__global__ void Meet(unsigned* begun, unsigned count) {
  atomicAdd(begun, 1);
  while (atomicAdd(begun, 0) < count) {
  }
}

void Say(const char* what, cudaError_t status) {
  std::printf("%s: %s\n", what, cudaGetErrorName(status));
  std::fflush(stdout);
}

}  // namespace

int main() {
  const char* const which = std::getenv("BROKER_KERNELS");
  unsigned* words = nullptr;
  if (which == nullptr || cudaMalloc(&words, 64) != cudaSuccess || cudaMemset(words, 0, 64) != cudaSuccess) return 1;
  if (const auto count = static_cast<unsigned>(std::strtoul(which, nullptr, 10)); count != 0) {
    std::vector<cudaStream_t> streams(count);
    for (cudaStream_t& stream : streams) {
      if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
      Meet<<<1, 32, 0, stream>>>(words, count);
    }
  } else if (std::strcmp(which, "compute") == 0) {
    Compute<<<4, 64>>>(words, 1);
  } else if (std::strcmp(which, "poll") == 0) {
    Poll<<<4, 64>>>(words, 1);
  } else {
    Barriers<<<4, 64>>>(words, 1);
  }
  Say("launch", cudaGetLastError());
  const cudaError_t waited = cudaDeviceSynchronize();
  Say("wait", waited);
  Say("allocation", cudaMalloc(&words, 64));
  return waited == cudaSuccess ? 0 : 1;
}
