// The CUDA names that the benchmark kernels use, for Debian's clang without a CUDA toolkit.
#pragma once

#include "tests/apps/driver/device.h"

struct alignas(16) int4 {
  int x, y, z, w;
};

__device__ inline int __shfl_down_sync(unsigned mask, int v, unsigned distance) {
  return __nvvm_shfl_sync_down_i32(mask, v, distance, 31);
}
__device__ inline int __shfl_up_sync(unsigned mask, int v, unsigned distance) {
  return __nvvm_shfl_sync_up_i32(mask, v, distance, 0);
}
__device__ inline unsigned __shfl_up_sync(unsigned mask, unsigned v, unsigned distance) {
  return __shfl_up_sync(mask, static_cast<int>(v), distance);
}
__device__ inline float __shfl_xor_sync(unsigned mask, float v, int lanes) {
  return __nvvm_shfl_sync_bfly_f32(mask, v, lanes, 31);
}
__device__ inline unsigned __match_any_sync(unsigned mask, unsigned v) { return __nvvm_match_any_sync_i32(mask, v); }
__device__ inline void __syncwarp() { __nvvm_bar_warp_sync(0xffffffffu); }
__device__ inline int __popc(unsigned v) { return __builtin_popcount(v); }
__device__ inline int atomicAdd(int* p, int v) { return __nvvm_atom_add_gen_i(p, v); }
__device__ inline unsigned atomicAdd(unsigned* p, unsigned v) {
  return __nvvm_atom_add_gen_i(reinterpret_cast<int*>(p), v);
}
__device__ inline float fmaf(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
__device__ inline double fma(double a, double b, double c) { return __nvvm_fma_rn_d(a, b, c); }
__device__ inline float fmaxf(float a, float b) { return __nvvm_fmax_f(a, b); }
__device__ inline float exp2f(float v) { return __nvvm_ex2_approx_f(v); }
__device__ inline float sqrtf(float v) { return __nvvm_sqrt_rn_f(v); }
__device__ inline float fabsf(float v) { return __nvvm_fabs_f(v); }
// Without libdevice: the hardware's approximations, a little coarser than CUDA's expf and logf.
__device__ inline float expf(float v) { return __nvvm_ex2_approx_f(v * 1.4426950408889634f); }
__device__ inline float logf(float v) { return __nvvm_lg2_approx_f(v) * 0.6931471805599453f; }
