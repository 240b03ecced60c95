// Host functions and callbacks in stream order, from several streams, asynchronous to the caller.
#include <atomic>
#include <thread>

#include "spin.h"

struct Step {
  int* log;
  int digit;
  std::thread::id caller;
};
std::atomic<int> g_calls{0};

void CUDART_CB HostFunction(void* data) {
  const Step* step = static_cast<Step*>(data);
  *step->log = *step->log * 10 + step->digit;
  ++g_calls;
}
void CUDART_CB Callback(cudaStream_t, cudaError_t status, void* data) {
  if (status == cudaSuccess) HostFunction(data);
}

int main() {
  int *pinned = nullptr, *device_view = nullptr;
  CU(cudaHostAlloc(&pinned, sizeof(int), cudaHostAllocMapped));
  CU(cudaHostGetDevicePointer(&device_view, pinned, 0));
  *pinned = 0;
  cudaStream_t stream;
  CU(cudaStreamCreate(&stream));
  Step steps[4] = {{pinned, 2, {}}, {pinned, 4, {}}, {pinned, 5, {}}, {pinned, 7, {}}};
  // Kernels and host functions take turns on the same cell.
  AppendDigit<<<1, 1, 0, stream>>>(device_view, 1);
  CU(cudaLaunchHostFunc(stream, HostFunction, &steps[0]));
  AppendDigit<<<1, 1, 0, stream>>>(device_view, 3);
  CU(cudaStreamAddCallback(stream, Callback, &steps[1], 0));
  CU(cudaLaunchHostFunc(stream, HostFunction, &steps[2]));
  AppendDigit<<<1, 1, 0, stream>>>(device_view, 6);
  CU(cudaLaunchHostFunc(stream, HostFunction, &steps[3]));
  CU(cudaStreamSynchronize(stream));
  Same("turns", 0, *pinned, 1234567);

  // The caller goes on while the stream works.
  SpinThenStore<<<1, 1, 0, stream>>>(device_view, 9, 20'000'000);
  CU(cudaLaunchHostFunc(stream, HostFunction, &steps[0]));
  const int before = g_calls;
  CU(cudaDeviceSynchronize());
  Same("asynchronous", 0, before, 4), Same("after", 0, g_calls.load(), 5), Same("value", 0, *pinned, 92);

  int counters[6] = {};
  cudaStream_t streams[6];
  std::vector<Step> many(6 * 50);
  for (int s = 0; s < 6; ++s) {
    CU(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    for (int k = 0; k < 50; ++k) {
      many[s * 50 + k] = {&counters[s], 1, {}};
      CU(cudaLaunchHostFunc(
          streams[s], [](void* data) { *static_cast<Step*>(data)->log += 1; }, &many[s * 50 + k]));
    }
  }
  CU(cudaDeviceSynchronize());
  for (int s = 0; s < 6; ++s) Same("many", s, counters[s], 50);
  return Verdict();
}
