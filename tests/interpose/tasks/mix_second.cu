// The second module of the mixes, with kernels that cannot be tasks among the others.
#include "mix.h"

static __device__ Word counter;
static __device__ Word lock;
Word second_counted = 0;

static __global__ void Affine(Word* out, const Word* in, Word factor) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x)
    out[i] = (in[i] + factor) * 2654435761u;
}
static void HostAffine(const Job& job) {
  for (unsigned i = 0; i < kWords; ++i) job.out[i] = (job.in[i] + job.factor) * 2654435761u;
}

/// Some threads end before the others wait; memory whose size the launch tells.
static __global__ void Early(Word* out, const Word* in, Word factor) {
  extern __shared__ Word words[];
  const unsigned stride = gridDim.x * blockDim.x, own = blockIdx.x * blockDim.x + threadIdx.x;
  words[threadIdx.x] = 0;
  if (threadIdx.x * 3 > blockDim.x * 2) {
    for (unsigned i = own; i < kWords; i += stride) out[i] = in[i] - factor;
    return;
  }
  for (unsigned round = 0; round < kWords / stride + 1; ++round) {
    const unsigned i = own + round * stride;
    words[threadIdx.x] = threadIdx.x + round;
    __syncthreads();
    const Word other = words[0] + threadIdx.x;
    __syncthreads();
    if (i < kWords) out[i] = in[i] - factor + other - threadIdx.x - round;
  }
}
static void HostEarly(const Job& job) {
  for (unsigned i = 0; i < kWords; ++i) job.out[i] = job.in[i] - job.factor;
}

static __global__ void Count(Word* out, const Word* in, Word factor) {
  atomicAdd(&counter, 1);
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x)
    out[i] = in[i] + factor;
}
static void HostCount(const Job& job) {
  second_counted += job.blocks * job.threads;
  for (unsigned i = 0; i < kWords; ++i) job.out[i] = job.in[i] + job.factor;
}

/// Refused: lanes exchange values where some do not come.
static __global__ void Exchange(Word* out, const Word* in, Word factor) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x) {
    Word value = in[i];
    if (threadIdx.x % 2 == 0) value += __popc(__ballot_sync(__activemask(), 1)) * 0;
    out[i] = value * factor;
  }
}
static void HostExchange(const Job& job) {
  for (unsigned i = 0; i < kWords; ++i) job.out[i] = job.in[i] * job.factor;
}

/// Refused: a thread of each block waits for those of others.
static __global__ void Locked(Word* out, const Word* in, Word factor) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0u, 1u) != 0u) {
    }
    __threadfence();
    atomicExch(&lock, 0u);
  }
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x)
    out[i] = in[i] | factor;
}
static void HostLocked(const Job& job) {
  for (unsigned i = 0; i < kWords; ++i) job.out[i] = job.in[i] | job.factor;
}

/// Refused: it might print.
static __global__ void Printing(Word* out, const Word* in, Word factor) {
  if (factor == 0xFFFFFFFF) printf("never\n");
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x)
    out[i] = in[i] >> (factor % 3);
}
static void HostPrinting(const Job& job) {
  for (unsigned i = 0; i < kWords; ++i) job.out[i] = job.in[i] >> (job.factor % 3);
}

Word SecondCounter() {
  Word value = 0;
  CU(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  return value;
}

const Form kSecondForms[] = {
    {"Affine", [](const Job& j, cudaStream_t s) { Affine<<<j.blocks, j.threads, 0, s>>>(j.out, j.in, j.factor); },
     HostAffine},
    {"Early",
     [](const Job& j, cudaStream_t s) { Early<<<j.blocks, j.threads, 4 * j.threads, s>>>(j.out, j.in, j.factor); },
     HostEarly},
    {"Count", [](const Job& j, cudaStream_t s) { Count<<<j.blocks, j.threads, 0, s>>>(j.out, j.in, j.factor); },
     HostCount},
    {"Exchange", [](const Job& j, cudaStream_t s) { Exchange<<<j.blocks, j.threads, 0, s>>>(j.out, j.in, j.factor); },
     HostExchange},
    {"Locked", [](const Job& j, cudaStream_t s) { Locked<<<j.blocks, j.threads, 0, s>>>(j.out, j.in, j.factor); },
     HostLocked},
    {"Printing", [](const Job& j, cudaStream_t s) { Printing<<<j.blocks, j.threads, 0, s>>>(j.out, j.in, j.factor); },
     HostPrinting},
};
const unsigned kSecondCount = sizeof kSecondForms / sizeof *kSecondForms;
