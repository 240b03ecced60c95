// Very many device streams: each thread launches into its own, so that whoever keeps what a stream waits for, or the
// streams and events themselves, until the grid ends keeps it for hundreds of thousands of threads.
//   device_launch_streams [BLOCKS [memory]]      with `memory` it says what the process has taken at most, in KB
#include <sys/resource.h>

#include "app.h"

__global__ void Add(int* sum) { atomicAdd(sum, 1); }

__global__ void Parent(int* sum) {
  cudaEvent_t event;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return;
  Add<<<1, 1, 0, cudaStreamPerThread>>>(sum);
  cudaEventRecord(event, cudaStreamPerThread);
  cudaStreamWaitEvent(cudaStreamPerThread, event, 0);
  cudaEventDestroy(event);
  if (threadIdx.x % 32 == 0) Add<<<1, 1, 0, cudaStreamPerThread>>>(sum);
}

int main(int count, char** arguments) {
  const int blocks = count > 1 ? std::atoi(arguments[1]) : 2, threads = 256;
  Buffer<int> sum(std::vector<int>{0});
  Parent<<<blocks, threads>>>(sum);
  CU_LAUNCHED();
  Same("sum", 0, sum.Read()[0], blocks * (threads + threads / 32));
  rusage usage{};
  if (count > 2 && getrusage(RUSAGE_SELF, &usage) == 0) std::printf("at most %ld KB\n", usage.ru_maxrss);
  return Verdict();
}
