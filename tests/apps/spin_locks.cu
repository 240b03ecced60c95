// Locks that spin: between blocks, between warps in shared memory, and between the lanes of one warp.
#include "app.h"

__device__ int g_lock;
__device__ int g_ticket_next, g_ticket_serving;

// One thread per block takes the lock.
__global__ void BlockLock(int* counter, int rounds) {
  for (int r = 0; r < rounds; ++r) {
    if (threadIdx.x == 0)
      while (atomicCAS(&g_lock, 0, 1) != 0) {
      }
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1)
      *const_cast<volatile int*>(counter) = *const_cast<volatile int*>(counter) + 1, __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) __threadfence(), atomicExch(&g_lock, 0);
  }
}
// Every lane takes the same lock: needs forward progress of diverged lanes.
__global__ void LaneLock(int* lock, int* counter) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *const_cast<volatile int*>(counter) = *const_cast<volatile int*>(counter) + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
// The form that hangs without independent thread scheduling.
__global__ void NaiveLaneLock(int* lock, int* counter) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *const_cast<volatile int*>(counter) = *const_cast<volatile int*>(counter) + 1;
  __threadfence();
  atomicExch(lock, 0);
}
__global__ void TicketLock(int* order) {
  if (threadIdx.x % 32 == 0) {
    const int ticket = atomicAdd(&g_ticket_next, 1);
    while (atomicAdd(&g_ticket_serving, 0) != ticket) __nanosleep(50);
    order[ticket] = ticket * 2 + 1;
    __threadfence();
    atomicAdd(&g_ticket_serving, 1);
  }
}
// Warp 1 waits for warp 0 through shared memory, without a barrier.
__global__ void WarpFlag(int* out) {
  __shared__ volatile int flag, value;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    while (flag == 0) {
    }
    out[threadIdx.x - 32] = value + threadIdx.x;
  } else if (threadIdx.x == 31) {
    value = 1000;
    __threadfence_block();
    flag = 1;
  }
}

int main() {
  Buffer<int> lock(2), counter(3), order(64), flagged(32);
  int* counters = counter;
  BlockLock<<<13, 70>>>(counters, 5);
  LaneLock<<<5, 77>>>(lock, counters + 1);
  NaiveLaneLock<<<3, 48>>>(static_cast<int*>(lock) + 1, counters + 2);
  TicketLock<<<8, 256>>>(order);
  WarpFlag<<<1, 64>>>(flagged);
  CU_LAUNCHED();
  const auto c = counter.Read(), o = order.Read(), f = flagged.Read();
  Same("block lock", 0, c[0], 13 * 5), Same("lane lock", 0, c[1], 5 * 77), Same("naive lane lock", 0, c[2], 3 * 48);
  for (int i = 0; i < 64; ++i) Same("ticket", i, o[i], i * 2 + 1);
  for (int i = 0; i < 32; ++i) Same("flag", i, f[i], 1032 + i);
  return Verdict();
}
