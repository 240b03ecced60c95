// Many host threads: own streams, shared buffers, allocation, module use and launches at once.
#include <atomic>
#include <thread>

#include "app.h"

__global__ void AddValue(int* v, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] += value;
}
__global__ void Count(unsigned long long* counter) { atomicAdd(counter, 1ULL); }

int main() {
  const int threads = 8, rounds = 25, n = 3000;
  Buffer<unsigned long long> counter(1);
  std::atomic<int> wrong{0}, failed{0};
  const auto work = [&](int id) {
    cudaStream_t stream;
    int* v = nullptr;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) ++failed;
    for (int round = 0; round < rounds; ++round) {
      std::vector<int> host(n, -1);
      if (cudaMalloc(&v, n * sizeof(int)) != cudaSuccess) ++failed;
      if (cudaMemsetAsync(v, 0, n * sizeof(int), stream) != cudaSuccess) ++failed;
      for (int k = 0; k < 4; ++k) AddValue<<<(n + 99) / 100, 100, 0, stream>>>(v, id * 100 + round, n);
      Count<<<3, 7, 0, stream>>>(counter);
      if (cudaMemcpyAsync(host.data(), v, n * sizeof(int), cudaMemcpyDeviceToHost, stream) != cudaSuccess) ++failed;
      if (cudaStreamSynchronize(stream) != cudaSuccess) ++failed;
      for (int i = 0; i < n; ++i) wrong += host[i] != 4 * (id * 100 + round);
      if (cudaFree(v) != cudaSuccess) ++failed;
    }
    if (cudaStreamDestroy(stream) != cudaSuccess) ++failed;
  };
  std::vector<std::thread> pool;
  for (int id = 0; id < threads; ++id) pool.emplace_back(work, id);
  for (auto& thread : pool) thread.join();
  CU(cudaDeviceSynchronize());
  Same("wrong", 0, wrong.load(), 0), Same("failed", 0, failed.load(), 0);
  Same("count", 0, counter.Read()[0], static_cast<unsigned long long>(threads * rounds * 21));
  // The last error belongs to each thread.
  cudaMalloc(nullptr, 4);
  std::thread([&] { failed += cudaPeekAtLastError() != cudaSuccess; }).join();
  Same("other thread's error", 0, failed.load(), 0);
  Error("own error", cudaGetLastError(), cudaErrorInvalidValue);
  return Verdict();
}
