// Threads that launch into streams and destroy them while another one resets the device: calls may fail meanwhile, and
// launches may not run, but nothing crashes or hangs, and behind the last reset all is as at the program's begin.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

__global__ void Add(unsigned* to, unsigned what) { atomicAdd(to, what); }

/// Takes a while, and is too wide for a task: those behind it are there for long.
__global__ void Wait(unsigned* to, unsigned rounds) {
  unsigned sum = 0;
  for (unsigned i = 0; i < rounds; ++i) sum = sum * 1664525u + 1013904223u;
  if (sum == 1) atomicAdd(to, sum);
}

/// Launches from a device's first use to its next reset, and on, until it is told to end.
void Launch(const std::atomic<bool>& end) {
  while (!end) {
    unsigned* word = nullptr;
    cudaStream_t stream = nullptr;
    if (cudaMalloc(&word, sizeof *word) != cudaSuccess ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
      continue;
    Wait<<<8, 128, 0, stream>>>(word, 20'000);
    for (unsigned i = 0; i < 50; ++i) Add<<<2, 32, 0, stream>>>(word, 1);
    cudaStreamDestroy(stream);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(2));  // not much faster than they run: a reset waits for what is queued
  }
}

/// Tasks whose turn comes behind the reset, as they stand behind a long kernel in a stream that is gone. The next ones
/// find another MasterKernel, which does not know them.
void LeaveTasksBehind() {
  unsigned* word = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaMalloc(&word, sizeof *word) != cudaSuccess ||
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
    return;
  Add<<<2, 32, 0, stream>>>(word, 1);
  cudaStreamSynchronize(stream);
  Wait<<<8, 1024, 0, stream>>>(word, 300'000);
  for (unsigned i = 0; i < 50; ++i) Add<<<2, 32, 0, stream>>>(word, 1);
  cudaStreamDestroy(stream);
  cudaDeviceReset();
}

bool Works() {
  unsigned* word = nullptr;
  unsigned sum = 0;
  if (cudaMalloc(&word, sizeof *word) != cudaSuccess || cudaMemset(word, 0, sizeof *word) != cudaSuccess) return false;
  for (unsigned i = 0; i < 20; ++i) Add<<<2, 32>>>(word, 1);
  return cudaMemcpy(&sum, word, sizeof sum, cudaMemcpyDeviceToHost) == cudaSuccess && sum == 20 * 64;
}

}  // namespace

int main(int argc, char** argv) {
  const int resets = argc > 1 ? std::atoi(argv[1]) : 20;
  for (int i = 0; i < resets / 4; ++i) {
    LeaveTasksBehind();
    if (Works()) continue;
    std::printf("FAIL: tasks left behind, %s\n", cudaGetErrorName(cudaGetLastError()));
    return 1;
  }
  std::atomic<bool> end{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&end] { Launch(end); });
  for (int i = 0; i < resets; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 7));
    cudaDeviceReset();
  }
  end = true;
  for (std::thread& thread : threads) thread.join();
  cudaDeviceReset();
  cudaGetLastError();
  std::printf(Works() ? "PASS\n" : "FAIL: %s\n", cudaGetErrorName(cudaGetLastError()));
  return 0;
}
