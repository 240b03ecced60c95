// A main thread that ends by pthread_exit: the process ends with the last of the program's threads, and by its exit
// handlers. usage: main_leaves alone|others|unused|function
#include <cuda_runtime.h>
#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

__global__ void Store(int* out) { *out = 5; }
__global__ void Wait() {
  unsigned long long begin = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < 200'000'000);
}

const char* g_part = "";
bool g_done = false;

/// What was printed is written by exit alone: standard output is a pipe.
void AtExit() { std::printf(g_done ? "PASS: %s\n" : "FAIL: %s: ended too early\n", g_part); }

void Compute() {
  int *out = nullptr, got = 0;
  cudaMalloc(&out, sizeof(int));
  Store<<<1, 1>>>(out);
  cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost);
  if (got != 5) std::abort();
}

void Later(bool computes) {
  std::thread([computes] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    if (computes) Compute();
    g_done = true;
  }).detach();
}

}  // namespace

int main(int, char** argv) {
  g_part = argv[1];
  std::atexit(AtExit);
  if (std::strcmp(g_part, "unused") == 0) {  // by the main thread
    std::thread(Compute).join();
    Later(false);
    pthread_exit(nullptr);
  }
  Compute();
  if (std::strcmp(g_part, "others") == 0) Later(true);
  else g_done = true;
  if (std::strcmp(g_part, "function") == 0) {  // which runs on no thread of the program's
    g_done = false;
    Wait<<<1, 1>>>();
    cudaLaunchHostFunc(
        nullptr, [](void*) { g_done = true; }, nullptr);
  }
  pthread_exit(nullptr);
}
