// A program whose threads are in CUDA calls forks, again and again. In each child every call answers with an error, and
// the child ends. "first": children are forked while another thread's first call makes the device. What a child's first
// call answers is either that the GPU stayed with the parent, or that there is none yet and it has one of its own; it
// comes at once.
#include <cuda.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kChildren = 300, kThreads = 4;
constexpr unsigned kSecondsOfAChild = 10;

__global__ void Add(int* value) { atomicAdd(value, 1); }

std::atomic<bool> g_stop{false};

void Call() {
  int* value = nullptr;
  cudaMalloc(&value, sizeof(int));
  while (!g_stop) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    Add<<<1, 1, 0, stream>>>(value);
    int device = 0;
    for (int i = 0; i < 20'000; ++i) {  // each looks up what the runtime keeps in the context, under a lock
      cudaStreamQuery(nullptr);
      cudaGetDevice(&device);
    }
    void* other = nullptr;
    cudaMalloc(&other, 1000);
    cudaStreamSynchronize(stream);
    cudaFree(other);
    cudaStreamDestroy(stream);
  }
}

/// The number of the first call that succeeded, or 0.
int Child() {
  void* p = nullptr;
  if (cudaMalloc(&p, 16) == cudaSuccess) return 1;
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) == cudaSuccess) return 2;
  Add<<<1, 1>>>(nullptr);
  if (cudaGetLastError() == cudaSuccess) return 3;
  if (cudaDeviceSynchronize() == cudaSuccess) return 4;
  if (cudaMemcpy(&p, &p, 8, cudaMemcpyDefault) == cudaSuccess) return 5;
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) == CUDA_SUCCESS) return 6;
  if (cuInit(0) == CUDA_SUCCESS) return 7;
  return 0;
}

int InWait(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

/// In a process of its own, which has made no call yet.
int FirstCalls(unsigned wait_us) {
  std::atomic<bool> begins{false};
  std::thread first([&] {
    begins = true;
    cuInit(0);
  });
  while (!begins) std::this_thread::yield();
  usleep(wait_us);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSecondsOfAChild);
    const CUresult answer = cuInit(0);
    _exit(answer == CUDA_SUCCESS || answer == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  first.join();
  const int status = InWait(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int RunFirst() {
  constexpr unsigned kProcesses = 150;
  for (unsigned i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(FirstCalls(i * 20));
    const int status = InWait(child);
    if (status == 0) continue;
    std::printf("FAIL: process %u: status %d\n", i, status);
    return 1;
  }
  std::printf("PASS: %u processes\n", kProcesses);
  return 0;
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) return RunFirst();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(Call);
  usleep(200'000);
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSecondsOfAChild);
      const int answer = Child();
      if (i % 2 == 0) std::exit(answer);  // with all exit handlers
      _exit(answer);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      std::printf("FAIL: child %d: %s %d\n", i, WIFEXITED(status) ? "call" : "signal",
                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
      std::fflush(stdout);
      _exit(1);
    }
    usleep(300);
  }
  g_stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("PASS: %d children\n", kChildren);
}
