// Some tasks, then three seconds without any, then some more.
//
// usage: idle [tasks, 100]
#include <unistd.h>

#include "mix.h"

__global__ void Add(Word* out) { atomicAdd(out, 1); }

int main(int argc, char** argv) {
  const int tasks = argc > 1 ? std::atoi(argv[1]) : 100;
  Word* memory = nullptr;
  CU(cudaMalloc(&memory, sizeof(Word)));
  CU(cudaMemset(memory, 0, sizeof(Word)));
  for (int i = 0; i < tasks; ++i) Add<<<1, 32>>>(memory);
  CU(cudaDeviceSynchronize());
  sleep(3);
  for (int i = 0; i < tasks; ++i) Add<<<1, 32>>>(memory);
  Word got = 0;
  CU(cudaMemcpy(&got, memory, sizeof got, cudaMemcpyDeviceToHost));
  std::printf("%s\n", got == 64u * static_cast<Word>(tasks) ? "PASS" : "FAIL");
  return got != 64u * static_cast<Word>(tasks);
}
