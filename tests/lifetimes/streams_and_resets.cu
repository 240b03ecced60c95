// Threads that make streams, launch narrow kernels into them, let them wait for each other and destroy them, while
// another thread resets the device: whatever becomes of the work, nothing crashes or hangs, and what is launched when
// all that is over runs. usage: streams_and_resets [RESETS [THREADS]]
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "../apps/app.h"

namespace {

__global__ void Add(unsigned* to, unsigned times) {
  for (unsigned i = 0; i < times; ++i) atomicAdd(to, 1u);
}
__global__ void AddTwo(unsigned* to, unsigned times) {
  for (unsigned i = 0; i < times; ++i) atomicAdd(to + 1, 2u);
}

std::atomic<bool> g_stop{false};
std::atomic<unsigned long> g_launched{0};

/// The memory and the streams are the device's: a reset may take them at any time, and then calls answer with errors.
void LaunchRound(unsigned& random) {
  constexpr int kStreams = 4, kLaunches = 12;
  const auto next = [&] { return (random = random * 1664525u + 1013904223u) >> 16; };
  unsigned* data = nullptr;
  if (cudaMalloc(&data, 64) != cudaSuccess) return;
  std::vector<cudaStream_t> streams;
  for (int i = 0; i < kStreams; ++i) {
    cudaStream_t stream = nullptr;
    if (cudaStreamCreateWithFlags(&stream, i % 2 != 0 ? cudaStreamNonBlocking : cudaStreamDefault) != cudaSuccess)
      break;
    streams.push_back(stream);
  }
  cudaEvent_t event = nullptr;
  const bool waits = cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess;
  for (int i = 0; i < kLaunches && !streams.empty(); ++i) {
    const cudaStream_t stream = streams[next() % streams.size()];
    if (next() % 2 == 0) Add<<<1, 32, 0, stream>>>(data, 10);
    else AddTwo<<<2, 64, 0, stream>>>(data, 5);
    if (cudaGetLastError() == cudaSuccess) ++g_launched;
    if (waits && next() % 4 == 0 && cudaEventRecord(event, stream) == cudaSuccess)
      cudaStreamWaitEvent(streams[next() % streams.size()], event, 0);
    if (next() % 8 == 0) cudaMemsetAsync(data, 0, 8, stream);
  }
  if (next() % 2 == 0) {
    for (const cudaStream_t stream : streams) cudaStreamSynchronize(stream);
  }
  if (waits) cudaEventDestroy(event);
  for (const cudaStream_t stream : streams) cudaStreamDestroy(stream);
  if (next() % 2 == 0) cudaFree(data);
}

}  // namespace

int main(int argc, char** argv) {
  const int resets = argc > 1 ? std::atoi(argv[1]) : 100, threads = argc > 2 ? std::atoi(argv[2]) : 4;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([t] {
      for (unsigned random = static_cast<unsigned>(t); !g_stop;) LaunchRound(random);
    });
  }
  while (g_launched == 0) std::this_thread::yield();
  for (int i = 0; i < resets; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(std::rand() % 3000));
    cudaDeviceReset();
  }
  g_stop = true;
  for (std::thread& worker : workers) worker.join();
  cudaDeviceReset();
  static_cast<void>(cudaGetLastError());
  unsigned *data = nullptr, got[2] = {};
  CU(cudaMalloc(&data, sizeof got));
  CU(cudaMemset(data, 0, sizeof got));
  Add<<<1, 32>>>(data, 10);
  AddTwo<<<2, 64>>>(data, 5);
  CU(cudaMemcpy(got, data, sizeof got, cudaMemcpyDeviceToHost));
  Same("added", 0, got[0], 320u);
  Same("added", 1, got[1], 1280u);
  return Verdict();
}
