// Signals and kernels in one thread. usage: thread_signals blocked|handler|handler-alternate
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

constexpr std::size_t kHandlerBytes = 2u << 20;
volatile sig_atomic_t g_handled = 0;

__global__ void Store(int* out) { *out = 5; }
__global__ void Spin(unsigned* out, int turns) {
  unsigned value = threadIdx.x;
  for (int i = 0; i < turns; ++i) {
    value = value * 1664525 + 1013904223;
    __syncthreads();
  }
  out[threadIdx.x] = value;
}

int Fail(const char* what, long got) {
  std::printf("FAIL: %s: %ld\n", what, got);
  return 1;
}

/// A fault of a kernel is an error of CUDA's, though the thread blocks its signal since its first kernel; and it blocks
/// it afterwards.
int Blocked() {
  int *out = nullptr, *far = nullptr;
  cudaMalloc(&out, sizeof(int));
  Store<<<1, 1>>>(out);
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) return Fail("first kernel", status);
  sigset_t all, now;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  cudaMalloc(&far, std::size_t{1} << 30);
  cudaFree(far);  // no memory is there any more, and only the access itself tells
  Store<<<1, 1>>>(far + (std::size_t{1} << 27));
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaErrorIllegalAddress)
    return Fail("fault", status);
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  if (sigismember(&now, SIGSEGV) != 1 || sigismember(&now, SIGUSR1) != 1) return Fail("mask", 0);
  std::puts("PASS: blocked");
  return 0;
}

/// Uses more stack than a warp has.
void Handle(int) {
  volatile char room[kHandlerBytes];
  for (std::size_t i = 0; i < sizeof room; i += 512) room[i] = 1;
  g_handled = g_handled + room[0];
}

int Handler(int flags) {
  struct sigaction action {};
  action.sa_handler = Handle;
  action.sa_flags = SA_RESTART | flags;
  sigfillset(&action.sa_mask);  // what faults in it ends the process
  sigaction(SIGALRM, &action, nullptr);
  unsigned* out = nullptr;
  cudaMalloc(&out, 64 * sizeof(unsigned));
  Spin<<<1, 64>>>(out, 1);
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) return Fail("first kernel", status);
  const itimerval each{{0, 2000}, {0, 2000}}, none{};
  setitimer(ITIMER_REAL, &each, nullptr);
  for (int round = 0; round < 20 || g_handled < 20; ++round) {
    Spin<<<1, 64>>>(out, 20'000);
    if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess)
      return Fail("kernel beside a handler", status);
    if (round == 2000) return Fail("signals handled", g_handled);
  }
  setitimer(ITIMER_REAL, &none, nullptr);
  std::puts("PASS: handler");
  return 0;
}

}  // namespace

int main(int, char** argv) {
  if (std::strcmp(argv[1], "blocked") == 0) return Blocked();
  return Handler(std::strcmp(argv[1], "handler-alternate") == 0 ? SA_ONSTACK : 0);
}
