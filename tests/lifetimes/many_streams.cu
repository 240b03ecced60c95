// Streams that are destroyed with work in them, by the thousand. usage: many_streams pace|gate
// pace: a stream for each launch. The program does not get far ahead of its kernels.
// gate: all of the streams wait for the program, which goes on only when it has destroyed them.
#include <algorithm>
#include <cstring>

#include "../apps/app.h"

namespace {

/// Counts itself where the host can see it, behind some work.
__global__ void Work(unsigned* done, unsigned rounds) {
  unsigned sum = threadIdx.x;
  for (unsigned i = 0; i < rounds; ++i) sum = sum * 1664525u + 1013904223u;
  if (sum != 1 && threadIdx.x == 0) atomicAdd_system(done, 1u);
  if (sum == 1 && threadIdx.x != 0) atomicAdd_system(done, 1u);
}
__global__ void Gate(const volatile unsigned* open) {
  while (*open == 0) {
  }
}

unsigned Seen(const unsigned* word) { return *const_cast<const volatile unsigned*>(word); }

cudaStream_t MakeStream() {
  cudaStream_t stream = nullptr;
  CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

void Pace(unsigned* done) {
  constexpr unsigned kLaunches = 6000, kMostAhead = 2048;
  unsigned ahead = 0;
  for (unsigned i = 0; i < kLaunches; ++i) {
    const cudaStream_t stream = MakeStream();
    Work<<<1, 256, 0, stream>>>(done, 20'000);
    CU(cudaStreamDestroy(stream));
    ahead = std::max(ahead, i + 1 - Seen(done));
  }
  CU(cudaDeviceSynchronize());
  Note(ahead <= kMostAhead, "launches that were queued at once", 0, ahead, kMostAhead);
  Same("kernels that ran", 0, Seen(done), kLaunches);
}

void WaitAtGate(unsigned* done, unsigned* open) {
  constexpr unsigned kStreams = 1030;
  const cudaStream_t first = MakeStream();
  cudaEvent_t opened = nullptr;
  CU(cudaEventCreateWithFlags(&opened, cudaEventDisableTiming));
  Gate<<<1, 1, 0, first>>>(open);
  CU(cudaEventRecord(opened, first));
  for (unsigned i = 0; i < kStreams; ++i) {
    const cudaStream_t stream = MakeStream();
    CU(cudaStreamWaitEvent(stream, opened, 0));
    Work<<<1, 32, 0, stream>>>(done, 1);
    CU(cudaStreamDestroy(stream));
  }
  Same("kernels that ran before the gate was open", 0, Seen(done), 0u);
  *const_cast<volatile unsigned*>(open) = 1;
  CU(cudaDeviceSynchronize());
  Same("kernels that ran", 0, Seen(done), kStreams);
}

}  // namespace

int main(int argc, char** argv) {
  unsigned* words = nullptr;
  CU(cudaHostAlloc(&words, 2 * sizeof *words, cudaHostAllocDefault));
  words[0] = words[1] = 0;
  Work<<<1, 32>>>(words, 1);  // which compiles
  CU(cudaDeviceSynchronize());
  words[0] = 0;
  if (argc > 1 && std::strcmp(argv[1], "gate") == 0) WaitAtGate(words, words + 1);
  else Pace(words);
  return Verdict();
}
