// The CUDA names that kernels.cu uses, for Debian's clang without a CUDA toolkit.
#pragma once

#include "tests/apps/driver/device.h"

__device__ inline int __shfl_down_sync(unsigned mask, int v, unsigned distance) {
  return __nvvm_shfl_sync_down_i32(mask, v, distance, 31);
}
__device__ inline int atomicAdd(int* p, int v) { return __nvvm_atom_add_gen_i(p, v); }
__device__ inline unsigned atomicAdd(unsigned* p, unsigned v) {
  return __nvvm_atom_add_gen_i(reinterpret_cast<int*>(p), v);
}
__device__ inline float fmaf(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
__device__ inline float sqrtf(float v) { return __nvvm_sqrt_rn_f(v); }
__device__ inline float fabsf(float v) { return __nvvm_fabs_f(v); }
// Without libdevice: the hardware's approximations, a little coarser than CUDA's expf and logf.
__device__ inline float expf(float v) { return __nvvm_ex2_approx_f(v * 1.4426950408889634f); }
__device__ inline float logf(float v) { return __nvvm_lg2_approx_f(v) * 0.6931471805599453f; }
