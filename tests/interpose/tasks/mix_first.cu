// The first module of the mixes: its kernels have the names of those of the second one, its variables, too.
#include "mix.h"

static __device__ Word counter;
static __constant__ Word table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
static const Word kTable[8] = {3, 1, 4, 1, 5, 9, 2, 6};
Word first_counted = 0;

/// Each thread takes every so manieth word.
static __global__ void Affine(Word* out, const Word* in, Word factor) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x)
    out[i] = in[i] * factor + table[i % 8];
}
static void HostAffine(const Job& job) {
  for (unsigned i = 0; i < kWords; ++i) job.out[i] = job.in[i] * job.factor + kTable[i % 8];
}

/// Sums within blocks, through shared memory: a barrier in a loop.
static __global__ void Sums(Word* out, const Word* in, Word factor) {
  __shared__ Word part[640];
  for (unsigned first = blockIdx.x * blockDim.x; first < kWords; first += gridDim.x * blockDim.x) {
    const unsigned i = first + threadIdx.x;
    part[threadIdx.x] = i < kWords ? in[i] : 0;
    for (unsigned width = 1; width < blockDim.x; width *= 2) {
      __syncthreads();
      const Word more = threadIdx.x >= width ? part[threadIdx.x - width] : 0;
      __syncthreads();
      part[threadIdx.x] += more;
    }
    if (i < kWords) out[i] = part[threadIdx.x] * factor;
    __syncthreads();
  }
}
static void HostSums(const Job& job) {
  for (unsigned first = 0; first < kWords; first += job.threads) {
    Word sum = 0;
    for (unsigned i = first; i < first + job.threads && i < kWords; ++i) job.out[i] = (sum += job.in[i]) * job.factor;
  }
}

/// Works on a variable that the host reads by name, too.
static __global__ void Count(Word* out, const Word* in, Word factor) {
  atomicAdd(&counter, 1);
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x)
    out[i] = in[i] ^ factor;
}
static void HostCount(const Job& job) {
  first_counted += job.blocks * job.threads;
  for (unsigned i = 0; i < kWords; ++i) job.out[i] = job.in[i] ^ job.factor;
}

Word FirstCounter() {
  Word value = 0;
  CU(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  return value;
}

const Form kFirstForms[] = {
    {"Affine", [](const Job& j, cudaStream_t s) { Affine<<<j.blocks, j.threads, 0, s>>>(j.out, j.in, j.factor); },
     HostAffine},
    {"Sums", [](const Job& j, cudaStream_t s) { Sums<<<j.blocks, j.threads, 0, s>>>(j.out, j.in, j.factor); },
     HostSums},
    {"Count", [](const Job& j, cudaStream_t s) { Count<<<j.blocks, j.threads, 0, s>>>(j.out, j.in, j.factor); },
     HostCount},
};
const unsigned kFirstCount = sizeof kFirstForms / sizeof *kFirstForms;
