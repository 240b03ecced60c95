// State spaces, vectors, caching hints, atomics of every type and scope, fences.
#include <cuda_fp16.h>

#include <cuda/atomic>

__constant__ float coefficients[16] = {1, 2, 3};
__device__ int counter = 7;
__device__ int* pointer = &counter;
__managed__ double managed_value = 2.5;
__device__ const char* const names[] = {"one", "two"};
__shared__ int static_shared;

__global__ void Spaces(float4* out, const float4* __restrict__ in, int n) {
  __shared__ float tile[32][33];
  extern __shared__ float4 dynamic[];
  float local[16];
  for (int i = 0; i < 16; ++i) local[i] = coefficients[(i + n) & 15];
  tile[threadIdx.y][threadIdx.x] = local[n & 15];
  dynamic[threadIdx.x] = in[n];
  __syncthreads();
  out[0] = make_float4(tile[threadIdx.x][threadIdx.y], local[(n + 1) & 15], dynamic[n].x, *pointer + managed_value);
  out[1].x = __ldg(&in[1].y) + __ldcg(&in[2].z) + __ldcs(&in[3].w) + __ldlu(&in[4].x) + __ldcv(&in[5].y);
  __stcg(&out[2].x, 1.f);
  __stwt(&out[3], in[6]);
  out[4].x = names[n & 1][0] + __isGlobal(out) + __isShared(tile) + static_shared;
  reinterpret_cast<char2*>(out)[9] = make_char2(1, 2);
  reinterpret_cast<double2*>(out)[9] = make_double2(1, 2);
  reinterpret_cast<short4*>(out)[20] = make_short4(1, 2, 3, 4);
}

__global__ void Atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d, __half2* h) {
  __shared__ int s;
  atomicAdd(i, 1);
  atomicSub(i, 2);
  atomicMin(i, 3);
  atomicMax(u, 4u);
  atomicInc(u, 5u);
  atomicDec(u, 6u);
  u[1] = atomicAnd(u, 7u) + atomicOr(u, 8u) + atomicXor(u, 9u) + atomicExch(u, 10u) + atomicCAS(u, 11u, 12u);
  l[1] = atomicAdd(l, 1ull) + atomicCAS(l, 1ull, 2ull) + atomicMax(l, 3ull) + atomicExch(l, 4ull);
  f[1] = atomicAdd(f, 1.f) + atomicExch(f, 2.f);
  d[1] = atomicAdd(d, 1.0);
  h[1] = atomicAdd(h, h[2]);
  atomicAdd(&s, 1);
  atomicAdd_block(i, 1);
  atomicAdd_system(i, 1);
  atomicCAS_block(i, 1, 2);
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  cuda::atomic_ref<int, cuda::thread_scope_device> ref(*i);
  ref.store(3, cuda::memory_order_release);
  i[2] = ref.load(cuda::memory_order_acquire) + ref.fetch_add(2, cuda::memory_order_acq_rel);
}
