// cuda::atomic and cuda::atomic_ref from libcu++: orders, scopes, fetch operations, message passing between blocks.
#include <cuda/atomic>

#include "app.h"

using Counter = cuda::atomic<int, cuda::thread_scope_device>;

__global__ void Count(Counter* counter, cuda::atomic<unsigned long long, cuda::thread_scope_system>* wide, double* sum,
                      unsigned char* bytes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  counter->fetch_add(2, cuda::memory_order_relaxed);
  wide->fetch_max(static_cast<unsigned long long>(i) << 33);
  cuda::atomic_ref<double, cuda::thread_scope_device>(*sum).fetch_add(0.5);
  cuda::atomic_ref<unsigned char, cuda::thread_scope_block> byte(
      bytes[i / 4]);  // byte atomics are built from 32-bit ones
  unsigned char old = byte.load();
  while (!byte.compare_exchange_weak(old, old + 1)) {
  }
}
// Block 0 publishes data and raises a flag; the others acquire it. Works because all blocks are co-resident.
__global__ void Publish(int* data, Counter* flag, int* out) {
  if (blockIdx.x == gridDim.x - 1) {
    data[threadIdx.x] = threadIdx.x * 11;
    __syncthreads();
    if (threadIdx.x == 0) flag->store(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0)
      while (flag->load(cuda::memory_order_acquire) == 0) {
      }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
  }
}

int main() {
  const int n = 999;
  Counter* counters = nullptr;
  CU(cudaMalloc(&counters, 2 * sizeof(Counter)));
  CU(cudaMemset(counters, 0, 2 * sizeof(Counter)));
  cuda::atomic<unsigned long long, cuda::thread_scope_system>* wide = nullptr;
  CU(cudaMalloc(&wide, 8));
  CU(cudaMemset(wide, 0, 8));
  Buffer<double> sum(1);
  Buffer<unsigned char> bytes(256);
  Count<<<8, 125>>>(counters, wide, sum, bytes, n);
  CU_LAUNCHED();
  int count = 0;
  unsigned long long max = 0;
  CU(cudaMemcpy(&count, counters, 4, cudaMemcpyDeviceToHost));
  CU(cudaMemcpy(&max, wide, 8, cudaMemcpyDeviceToHost));
  Same("count", 0, count, 2 * n), Same("max", 0, max, (n - 1ULL) << 33), Same("sum", 0, sum.Read()[0], 0.5 * n);
  const auto b = bytes.Read();
  for (int k = 0; k < 256; ++k) Same("bytes", k, int(b[k]), k < 249 ? 4 : k == 249 ? 3 : 0);

  const int blocks = 4, threads = 70;
  Buffer<int> data(threads), out(blocks * threads);
  Publish<<<blocks, threads>>>(data, counters + 1, out);
  CU_LAUNCHED();
  const auto o = out.Read();
  for (int i = 0; i < (blocks - 1) * threads; ++i) Same("published", i, o[i], (threads - 1 - i % threads) * 11);
  return Verdict();
}
