// Kernels that wait for the host: it sets a flag in mapped memory some tenths of a second after they have begun.
// However they are run, they go on soon after, and what is recorded of them stays small.
#include <chrono>
#include <thread>

#include "app.h"

__global__ void Poll(volatile int* flag, volatile int* seen, unsigned* turns) {
  unsigned count = 0;
  if (threadIdx.x == 0) *seen = 1;
  while (*flag == 0) ++count;
  turns[threadIdx.x] = count;
}
/// One thread waits for all.
__global__ void PollAtBarrier(volatile int* flag, volatile int* seen, unsigned* turns) {
  unsigned count = 0;
  if (threadIdx.x == 0) {
    *seen = 1;
    while (atomicAdd(const_cast<int*>(flag), 0) == 0) ++count;
  }
  __syncthreads();
  turns[threadIdx.x] = count;
}

int main() {
  int* host = nullptr;
  CU(cudaHostAlloc(&host, 4096, cudaHostAllocMapped));
  Buffer<unsigned> turns(64);
  volatile int* const flag = host;
  volatile int* const seen = host + 64;
  for (int round = 0; round < 2; ++round) {
    *flag = *seen = 0;
    if (round == 0) Poll<<<1, 64>>>(flag, seen, turns);
    else PollAtBarrier<<<1, 64>>>(flag, seen, turns);
    CU(cudaGetLastError());
    // It may not begin before somebody waits for it.
    for (int i = 0; i < 1000 && *seen == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto begin = std::chrono::steady_clock::now();
    *flag = 1;
    CU(cudaDeviceSynchronize());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    True("goes on soon", seconds < 60);
    Same("seen", 0, *seen, 1);
  }
  CU(cudaFreeHost(host));
  return Verdict();
}
