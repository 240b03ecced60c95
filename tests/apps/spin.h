// A kernel that takes a while, for programs about ordering.
#pragma once

#include "app.h"

/// Waits about `nanoseconds` of device time, then stores `value`.
static __global__ void SpinThenStore(volatile int* out, int value, long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
  *out = value;
}
static __global__ void AppendDigit(int* out, int digit) { *out = *out * 10 + digit; }
