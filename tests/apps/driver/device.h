// The little of CUDA C++ that the device sources of this folder use, for Debian's clang without a CUDA toolkit.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

// threadIdx.x and the like read special registers.
#define GL_INDEX(name, reg)                                                             \
  struct name##_t {                                                                     \
    struct X {                                                                          \
      __device__ operator unsigned() const { return __nvvm_read_ptx_sreg_##reg##_x(); } \
    };                                                                                  \
    struct Y {                                                                          \
      __device__ operator unsigned() const { return __nvvm_read_ptx_sreg_##reg##_y(); } \
    };                                                                                  \
    struct Z {                                                                          \
      __device__ operator unsigned() const { return __nvvm_read_ptx_sreg_##reg##_z(); } \
    };                                                                                  \
    X x;                                                                                \
    Y y;                                                                                \
    Z z;                                                                                \
  };                                                                                    \
  static __device__ const name##_t name
GL_INDEX(threadIdx, tid);
GL_INDEX(blockIdx, ctaid);
GL_INDEX(blockDim, ntid);
GL_INDEX(gridDim, nctaid);
#undef GL_INDEX

__device__ inline void SyncThreads() { __nvvm_bar_sync(0); }
__device__ inline int ShuffleDown(int value, int distance) {
  return __nvvm_shfl_sync_down_i32(0xffffffff, value, distance, 31);
}
__device__ inline unsigned Ballot(bool vote) { return __nvvm_vote_ballot_sync(0xffffffff, vote); }
__device__ inline unsigned AtomicAdd(unsigned* p, unsigned v) {
  return __nvvm_atom_add_gen_i(reinterpret_cast<int*>(p), v);
}
__device__ inline double Fma(double a, double b, double c) { return __nvvm_fma_rn_d(a, b, c); }
__device__ inline float Fma(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
