// Threads that end inside of functions: recursive ones, ones called through pointers, with barriers and shuffles around
// them.
#include "app.h"

__device__ __noinline__ int Recurse(int* log, int depth, int end_at) {
  if (depth == 0) return 1;
  if (depth == end_at) {
    log[threadIdx.x] = -depth;
    asm volatile("exit;");
  }
  return Recurse(log, depth - 1, end_at) + 1;
}
// Thread t ends at depth t % 7; those with 0 come back.
__global__ void Recursive(int* log, int depth) {
  const int got = Recurse(log, depth, threadIdx.x % 7);
  log[threadIdx.x] = got;
}

using Function = int (*)(int* log, int value);
__device__ __noinline__ int Ends(int* log, int value) {
  log[threadIdx.x] = 1000 + value;
  asm volatile("exit;");
  return value;
}
__device__ __noinline__ int EndsSome(int* log, int value) {
  if (value & 1) Ends(log, value);
  return value + 5;
}
__device__ __noinline__ int ComesBack(int*, int value) { return value * 2; }
__device__ Function table[] = {ComesBack, Ends, EndsSome};
__global__ void Indirect(int* log, int rounds) {
  int value = threadIdx.x;
  for (int round = 0; round < rounds; ++round) value = table[(threadIdx.x + round) % 3](log, value);
  log[threadIdx.x] = value;
}
int IndirectHost(int thread, int rounds) {
  int value = thread;
  for (int round = 0; round < rounds; ++round) {
    const int which = (thread + round) % 3;
    if (which == 0) value *= 2;
    else if (which == 1 || (value & 1)) return 1000 + value;
    else value += 5;
  }
  return value;
}

// Half of every warp ends in a function; the others go on through barriers, shuffles and votes.
__device__ __noinline__ int Barrier(int* s, int value) {
  if (threadIdx.x & 1) asm volatile("exit;");
  s[threadIdx.x] = value;
  __syncthreads();
  return s[threadIdx.x ^ 2];
}
__global__ void WithBarriers(int* out, unsigned* votes) {
  __shared__ int s[256];
  int value = threadIdx.x;
  const int recursive = Recurse(out, 3, 9);
  value = Barrier(s, value + recursive);
  const unsigned mask = __activemask();
  votes[threadIdx.x] = __ballot_sync(0x55555555, value > 100);
  value += __shfl_xor_sync(0x55555555, value, 4);
  __syncthreads();
  out[threadIdx.x] = value + (mask == 0x55555555 ? 0 : 10000);
}

// Barriers, votes and shuffles inside recursive functions, and a trap that nobody reaches.
__device__ __noinline__ int Reduce(int* s, int value, int distance) {
  if (distance == 0) return value;
  if (distance > 64) asm volatile("trap;");
  s[threadIdx.x] = value;
  __syncthreads();
  const int other = s[threadIdx.x ^ distance];
  __syncthreads();
  value += other;
  if (__any_sync(~0u, value < 0)) return -1;
  return Reduce(s, value, distance / 2);
}
__global__ void RecursiveBarriers(int* out) {
  __shared__ int s[128];
  out[threadIdx.x] = Reduce(s, threadIdx.x, 64);
}
__device__ __noinline__ int Shuffle(int value, int delta) {
  if (delta == 32) return value;
  return Shuffle(value + __shfl_xor_sync(~0u, value, delta), delta * 2);
}
__global__ void RecursiveShuffles(int* out) { out[threadIdx.x] = Shuffle(threadIdx.x, 1); }

int main() {
  const int n = 100;
  Buffer<int> log(256);
  Buffer<unsigned> votes(256);
  Recursive<<<1, n>>>(log, 6);
  CU_LAUNCHED();
  auto got = log.Read();
  for (int t = 0; t < n; ++t) Same("recursive", t, got[t], t % 7 == 0 ? 7 : -(t % 7));
  for (int rounds = 1; rounds < 6; ++rounds) {
    Indirect<<<1, n>>>(log, rounds);
    CU_LAUNCHED();
    got = log.Read();
    for (int t = 0; t < n; ++t) Same("indirect", rounds * 1000 + t, got[t], IndirectHost(t, rounds));
  }
  CU(cudaMemset(log, 0, 1024));
  WithBarriers<<<1, 256>>>(log, votes);
  CU_LAUNCHED();
  got = log.Read();
  const auto v = votes.Read();
  for (int t = 0; t < 256; t += 2) {
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; lane += 2) ballot |= (((t & ~31) + lane) ^ 2) + 4 > 100 ? 1u << lane : 0;
    Same("after exits", t, got[t], (t ^ 2) + 4 + ((t ^ 4) ^ 2) + 4);
    Same("votes", t, v[t], ballot);
    Same("ended", t + 1, got[t + 1], 0);
  }
  RecursiveBarriers<<<1, 128>>>(log);
  CU_LAUNCHED();
  got = log.Read();
  for (int t = 0; t < 128; ++t) Same("recursive barriers", t, got[t], 127 * 128 / 2);
  RecursiveShuffles<<<1, 64>>>(log);
  CU_LAUNCHED();
  got = log.Read();
  for (int t = 0; t < 64; ++t) Same("recursive shuffles", t, got[t], t < 32 ? 496 : 496 + 32 * 32);
  return Verdict();
}
