// A child forked before the first CUDA call, one forked and executed after it, one that only exits.
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"

__global__ void Square(int* v, int n) {
  const int i = threadIdx.x;
  if (i < n) v[i] *= v[i];
}
int Compute(int base) {
  std::vector<int> in(50);
  for (int i = 0; i < 50; ++i) in[i] = base + i;
  Buffer<int> v(in);
  Square<<<1, 64>>>(v, 50);
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  const auto out = v.Read();
  for (int i = 0; i < 50; ++i)
    if (out[i] != in[i] * in[i]) return 1;
  return 0;
}
int Wait(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  if (argc > 1) return Compute(std::atoi(argv[1]));
  pid_t child = fork();
  if (child == 0) _exit(Compute(10));
  Same("forked before", 0, Wait(child), 0);
  Same("parent", 0, Compute(20), 0);
  child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "30", static_cast<char*>(nullptr));
    _exit(99);
  }
  Same("executed", 0, Wait(child), 0);
  child = fork();
  if (child == 0) _exit(7);
  Same("only exits", 0, Wait(child), 7);
  // A forked child has no usable context: an error, neither a hang nor a crash.
  child = fork();
  if (child == 0) {
    void* p = nullptr;
    _exit(cudaMalloc(&p, 16) == cudaSuccess ? 1 : 0);
  }
  Same("no context in the child", 0, Wait(child), 0);
  Same("parent again", 0, Compute(40), 0);
  return Verdict();
}
