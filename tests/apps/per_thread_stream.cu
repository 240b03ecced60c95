// Built with --default-stream per-thread: each host thread has its own default stream.
#include <thread>

#include "spin.h"

int main() {
  Buffer<int> cell(4);
  int* p = cell;
  // Work in the default stream of another thread does not hold up this one's.
  std::thread other([p] {
    SpinThenStore<<<1, 1>>>(p, 5, 60'000'000);
    cudaStreamSynchronize(cudaStreamPerThread);
    AppendDigit<<<1, 1>>>(p, 6);
    cudaStreamSynchronize(nullptr);  // the per-thread stream
  });
  AppendDigit<<<1, 1>>>(p + 1, 7);
  CU(cudaStreamSynchronize(nullptr));
  int value = 0;
  CU(cudaMemcpyAsync(&value, p + 1, 4, cudaMemcpyDeviceToHost, nullptr));
  CU(cudaStreamSynchronize(nullptr));
  Same("own stream", 0, value, 7);
  other.join();
  CU(cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost));
  Same("other stream", 0, value, 56);
  // The legacy stream still orders with the per-thread ones.
  SpinThenStore<<<1, 1, 0, cudaStreamPerThread>>>(p + 2, 1, 5'000'000);
  AppendDigit<<<1, 1, 0, cudaStreamLegacy>>>(p + 2, 2);
  AppendDigit<<<1, 1, 0, cudaStreamPerThread>>>(p + 2, 3);
  CU(cudaDeviceSynchronize());
  Same("legacy", 0, cell.Read()[2], 123);
  return Verdict();
}
