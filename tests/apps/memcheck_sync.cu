// Barriers and .sync instructions: programs with one known mistake each, and right ones that come close to it.
// memcheck_sync_test.py knows what memcheck has to say. The line of a defect is marked with its name.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <chrono>
#include <cuda/barrier>
#include <string>
#include <thread>

#include "app.h"

namespace cg = cooperative_groups;
constexpr unsigned kAll = 0xffffffffu;

// --- barriers of the CTA ---
__global__ void SomeLanes(int* out) {
  const int t = threadIdx.x;
  if (t % 32 < 16) __syncthreads();  // some-lanes
  out[t] = t;
}
__global__ void SomeWarps(int* out) {
  const int t = threadIdx.x;
  if (t < 32) __syncthreads();  // some-warps
  out[t] = t;
}
__global__ void TwoBarriers(int* out) {
  __shared__ int a[64];
  const int t = threadIdx.x;
  if (t % 2 == 0) {
    a[t] = t;
    __syncthreads();  // two-barriers
  } else {
    a[t] = -t;
    out[t] = 1;
    __syncthreads();  // two-barriers
  }
  out[t] += a[63 - t];
}
__global__ void LoopBarrier(int* out) {
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < t % 32; ++i) {
    sum += out[i + 64];
    __syncthreads();  // loop-barrier
  }
  out[t] = sum;
}
__global__ void CountedBarrier(int* out) {
  const int t = threadIdx.x;
  int n = 0;
  if (t < 40) n = __syncthreads_count(t & 1);  // counted-barrier
  out[t] = n;
}

// --- masks ---
__global__ void WrongMask(int* out) {
  out[threadIdx.x] = 1;
  if (threadIdx.x < 20) __syncwarp(0x0000ffffu);  // wrong-mask
}
__global__ void WarpMissing(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = 1;
    __syncwarp(kAll);  // warp-missing
  }
  out[threadIdx.x + 64] = 2;
}
__global__ void ShuffleMissing(int* out) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) v += __shfl_down_sync(kAll, v, 8);  // shuffle-missing
  out[threadIdx.x] = v;
}
__global__ void ShuffleLoop(int* out) {
  int v = 0;
  for (int i = threadIdx.x; i < 50; i += 32) v += __shfl_xor_sync(kAll, out[i], 1);  // shuffle-loop
  out[threadIdx.x] = v;
}
__global__ void VoteMissing(int* out) {
  unsigned votes = 0;
  if (threadIdx.x % 2) votes = __ballot_sync(kAll, threadIdx.x > 4);  // vote-missing
  out[threadIdx.x] = votes;
}
__global__ void MatchMissing(int* out) {
  unsigned same = 0;
  if (threadIdx.x > 3) same = __match_any_sync(kAll, threadIdx.x & 3);  // match-missing
  out[threadIdx.x] = same;
}
__global__ void ReduceMissing(int* out) {
  unsigned sum = 0;
  if (threadIdx.x > 3) sum = __reduce_add_sync(kAll, threadIdx.x);  // reduce-missing
  out[threadIdx.x] = sum;
}
__global__ void ReduceBesideSync(int* out) {
  unsigned sum = 0;
  if (threadIdx.x < 16) {
    sum = __reduce_add_sync(kAll, threadIdx.x);  // reduce-beside-sync
  } else {
    out[0] = 1;
    __syncwarp();  // reduce-beside-sync
  }
  out[threadIdx.x] = sum;
}
__global__ void SomeOfBlock(int* out) {
  const int t = threadIdx.x;
  if (t < 32) cg::this_thread_block().sync();  // some-of-block
  out[t] = t;
}
__global__ void GridShort(int* out) {
  out[blockIdx.x] = 1;
  if (blockIdx.x == 0) cg::this_grid().sync();
  out[blockIdx.x] = 2;
}
/// Right, though blocks wait for the slowest one.
__global__ void GridRight(int* out) {
  if (blockIdx.x == 1)
    for (int i = 0; i < 1000; ++i) out[256 + threadIdx.x] += i;
  cg::this_grid().sync();
  out[blockIdx.x] = out[256];
  cg::this_grid().sync();
}
__global__ void WarpAtBarrier(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = 3;
    __syncwarp(kAll);  // warp-at-barrier
  } else {
    __syncthreads();
  }
}
__global__ void ShuffleSource(int* out) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) {
    v = __shfl_sync(0x0000ffffu, v, 20);
    out[threadIdx.x] = v + 1;  // shuffle-source
  }
}
__global__ void ShuffleEnded(int* out, int n) {
  if (threadIdx.x >= n) return;
  const int v = __shfl_down_sync(kAll, threadIdx.x + out[threadIdx.x], 16);
  out[threadIdx.x] = v;  // shuffle-ended
}

// --- mbarriers ---
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void ArrivalShort(int* out) {
  __shared__ alignas(Barrier) char memory[sizeof(Barrier)];
  Barrier* const barrier = reinterpret_cast<Barrier*>(memory);
  if (threadIdx.x == 0) init(barrier, blockDim.x + 1);
  __syncthreads();
  barrier->arrive_and_wait();
  out[threadIdx.x] = 1;
}
__device__ unsigned At(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void Init(unsigned at, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");  // init-twice init-count
}
__device__ void Inval(unsigned at) { asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at) : "memory"); }
__device__ void Expect(unsigned at, unsigned bytes) {
  // clang-format off
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(bytes) : "memory");  // overwritten
  // clang-format on
}
__device__ bool Over(unsigned at, unsigned parity) {
  int over;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"  // before-init
      : "=r"(over)
      : "r"(at), "r"(parity)  // before-init
      : "memory");
  return over != 0;
}
/// Right: waits for the host as well, longer than a wait for an mbarrier alone may take.
__global__ void AwaitHost(const volatile int* flag, int* out) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) Init(At(&barrier), 1);
  __syncthreads();
  while (*flag == 0 && !Over(At(&barrier), 0)) {
  }
  out[threadIdx.x] = *flag;
}
__global__ void BeforeInit(int* out) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) *out = Over(At(&barrier), 0);
}
__global__ void InitTwice(int* out) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    Init(At(&barrier), 4);
    Init(At(&barrier), 4);
  }
  *out = 1;
}
__global__ void InitCount(int* out, unsigned count) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) Init(At(&barrier), count);
  *out = 1;
}
__global__ void ArriveTooOften(int* out) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    Init(At(&barrier), 2);
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0], 3; }" ::"r"(At(&barrier)) : "memory");
  }
  *out = 1;
}
__global__ void Overwritten(int* out) {
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    Init(At(&barrier), 4);
    *reinterpret_cast<volatile unsigned long long*>(&barrier) = 77;
    Expect(At(&barrier), 16);
  }
  *out = 1;
}

// --- all of this is right ---
__device__ __noinline__ int NotInline(int v, int* tile) {
  tile[threadIdx.x] = v;
  __syncthreads();
  const int other = tile[(threadIdx.x + 1) % blockDim.x];
  __syncthreads();
  return other + __shfl_xor_sync(kAll, v, 1);
}
__global__ void Right(int* out, int n) {
  __shared__ int tile[256];
  __shared__ unsigned long long mbarrier;
  const int t = threadIdx.x, lane = t % 32;
  // The same for all threads, though no compiler knows.
  for (int i = 0; i < n; ++i) {
    if (n > i) __syncthreads();
    tile[t] = i;
  }
  if (n > 100) __syncthreads();
  // Whole warps, of masks that hold their lanes alone.
  int v = t;
  if (lane < 16) {
    for (int step = 8; step; step /= 2) v += __shfl_down_sync(0x0000ffffu, v, step);
    if (lane != 0) v = t;  // no sum, but something with what others have not given
    __syncwarp(0x0000ffffu);
  } else {
    v -= __shfl_xor_sync(0xffff0000u, v, 4);
    __syncwarp(0xffff0000u);
  }
  // Lanes that meet in different instructions.
  if (lane == 0) {
    tile[t] = 7;
    __syncwarp();
  } else {
    v += lane;
    __syncwarp();
  }
  if (lane % 2) __syncwarp();
  out[t] = 1;
  if (lane % 2 == 0) __syncwarp();
  // Who is there, adds for all.
  if (t % 3 == 0) {
    const unsigned there = __activemask();
    const int leader = __ffs(there) - 1;
    int old = 0;
    if (lane == leader) old = atomicAdd(out + 600, __popc(there));
    old = __shfl_sync(there, old, leader);
    v += old > 100000;
  }
  const auto group = cg::coalesced_threads();
  v += cg::reduce(group, 1, cg::plus<int>());
  if (t % 5 < 2) v += cg::coalesced_threads().shfl(v, 0) > 1 << 30;
  const auto tile8 = cg::tiled_partition<8>(cg::this_thread_block());
  if (t / 8 % 2) v += cg::reduce(tile8, v, cg::greater<int>());
  // Lanes of a ballot.
  const bool mine = v % 3 == 0;
  const unsigned some = __ballot_sync(kAll, mine);
  if (mine) v += __reduce_add_sync(some, 1u);
  v += NotInline(v, tile);
  // Begun, used, ended and begun anew.
  if (t == 0) {
    Init(At(&mbarrier), 2);
    v += Over(At(&mbarrier), 1);
    Inval(At(&mbarrier));
    Init(At(&mbarrier), 1);
  }
  __syncthreads();
  v += __syncthreads_or(v > 1 << 30);
  cg::this_thread_block().sync();
  // Behind the work of some, at the ends of others.
  if (t >= 200) {
    out[t] = v;
    return;
  }
  __syncthreads();
  tile[t] = v;
  if (t >= 150) return;
  __syncthreads();
  // A sum of a part of the warp, of which one lane is wanted.
  const unsigned rest = __ballot_sync(kAll, t < 144);
  if (t < 144) {
    int sum = tile[t];
    for (int step = 16; step; step /= 2) {
      const int other = __shfl_down_sync(rest, sum, step);
      if (lane + step < __popc(rest)) sum += other;
    }
    if (lane == 0) out[t] = sum;
  }
}
/// Producers and consumers at barriers of their own; each warp's turn is another.
__global__ void Named(int* out) {
  __shared__ int tile[64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int i = 0; i < 3; ++i) {
      tile[lane] = i;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    }
  } else {
    for (int i = 0; i < 3; ++i) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      out[lane] = tile[lane];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
}
__global__ void Arrived(int* out) {
  __shared__ alignas(Barrier) char memory[sizeof(Barrier)];
  Barrier* const barrier = reinterpret_cast<Barrier*>(memory);
  if (threadIdx.x == 0) init(barrier, blockDim.x);
  __syncthreads();
  for (int i = 0; i < 4; ++i) barrier->arrive_and_wait();
  if (threadIdx.x >= 48) {
    barrier->arrive_and_drop();
    return;
  }
  barrier->arrive_and_wait();
  out[threadIdx.x] = 1;
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "none";
  int* out = nullptr;
  CU(cudaMalloc(&out, 4096));
  CU(cudaMemset(out, 0, 4096));
  struct Case {
    const char* name;
    void (*kernel)(int*);
    int threads;
  };
  const Case cases[] = {
      {"some-lanes", SomeLanes, 64},           {"some-warps", SomeWarps, 64},
      {"two-barriers", TwoBarriers, 64},       {"loop-barrier", LoopBarrier, 64},
      {"counted-barrier", CountedBarrier, 64}, {"wrong-mask", WrongMask, 32},
      {"warp-missing", WarpMissing, 32},       {"shuffle-missing", ShuffleMissing, 32},
      {"shuffle-loop", ShuffleLoop, 32},       {"vote-missing", VoteMissing, 32},
      {"match-missing", MatchMissing, 32},     {"reduce-missing", ReduceMissing, 32},
      {"warp-at-barrier", WarpAtBarrier, 32},  {"shuffle-source", ShuffleSource, 32},
      {"arrival-short", ArrivalShort, 64},     {"before-init", BeforeInit, 32},
      {"init-twice", InitTwice, 32},           {"arrive-too-often", ArriveTooOften, 32},
      {"overwritten", Overwritten, 32},
  };
  for (const Case& one : cases)
    if (name == one.name) one.kernel<<<1, one.threads>>>(out);
  if (name == "reduce-beside-sync") ReduceBesideSync<<<1, 32>>>(out);
  if (name == "some-of-block") SomeOfBlock<<<1, 64>>>(out);
  void* arguments[] = {&out};
  if (name == "grid-short")
    CU(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(GridShort), dim3(2), dim3(64), arguments, 0, nullptr));
  if (name == "shuffle-ended") ShuffleEnded<<<1, 32>>>(out, 20);
  if (name == "init-count") InitCount<<<1, 32>>>(out, 0);
  if (name == "host-flag") {
    int* flag = nullptr;
    CU(cudaMallocHost(&flag, sizeof(int)));
    *flag = 0;
    AwaitHost<<<1, 32>>>(flag, out);
    std::this_thread::sleep_for(std::chrono::milliseconds(3500));
    *const_cast<volatile int*>(flag) = 1;
  }
  if (name == "none") {
    Right<<<3, 256>>>(out, 5);
    Named<<<1, 64>>>(out);
    Arrived<<<1, 64>>>(out);
    CU(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(GridRight), dim3(5), dim3(64), arguments, 0, nullptr));
  }
  std::printf("%s: %s\n", name.c_str(), cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
