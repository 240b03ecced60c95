// What slices.sm_75.cubin, slices.sm_80.cubin and slices.sm_90.cubin in this folder were compiled from (nvcc 13.0,
// -cubin).
#include <cooperative_groups.h>

#include <cstdio>

namespace groups = cooperative_groups;

__global__ void AxisX(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += 1;
}

__global__ void AllAxes(int* out, char tag) {
  out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = tag + gridDim.z;
}

__global__ void Stride(float* data, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) data[i] *= data[i + n];
}

__global__ void UniformIndex(float* data, const int* table) {
  __shared__ float tile[128];
  tile[threadIdx.x] = data[table[blockIdx.y] + threadIdx.x];
  __syncthreads();
  data[blockIdx.x * 128 + threadIdx.x] = tile[127 - threadIdx.x];
}

__global__ void Whole(int* data) { data[threadIdx.x] = data[threadIdx.x + 1]; }

__device__ int last_count;
__global__ void NoParams() {
  if (threadIdx.x == 0) atomicAdd(&last_count, static_cast<int>(blockIdx.x));
}

__global__ void LastBlock(float* data) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&last_count, 1) == static_cast<int>(gridDim.x) - 1;
  }
  __syncthreads();
  if (last) data[threadIdx.x] = data[threadIdx.x + 128];
}

__device__ __noinline__ int Place(int factor) { return factor * static_cast<int>(blockIdx.x + gridDim.y); }
__global__ void Calls(int* out, int n) { out[threadIdx.x] = Place(n) / n; }

__global__ void Retry(double* sum) {
  auto* const bits = reinterpret_cast<unsigned long long*>(sum);
  unsigned long long old = *bits, seen;
  do {
    seen = old;
    old = atomicCAS(bits, seen, __double_as_longlong(__longlong_as_double(seen) * 2 + blockIdx.x));
  } while (old != seen);
}

__global__ void Prints(const int* data) { printf("%d\n", data[blockIdx.x]); }

__global__ void ManyRegisters(float* data, int n) {
  float x[110];
  for (int i = 0; i < 110; ++i) x[i] = data[i * n];
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < 110; ++i) x[i] = x[i] * x[(i * 7 + 3) % 110] + blockIdx.y;
  }
  float sum = 0;
  for (int i = 0; i < 110; ++i) sum += x[i] * i;
  data[blockIdx.z] = sum;
}

// Not in slices:

__global__ void SpinsOnAtomic(unsigned* arrived) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1U);
    while (atomicAdd(arrived, 0U) < gridDim.x) {
    }
  }
  __syncthreads();
  arrived[blockIdx.x + 1] = 3;
}

__global__ void SpinsOnVolatile(volatile int* flags) {
  if (threadIdx.x == 0 && blockIdx.x > 0) {
    while (flags[blockIdx.x - 1] == 0) {
    }
  }
  __syncthreads();
  flags[blockIdx.x] = 3;
}

__global__ void CountsFlags(volatile int* flags, int n) {
  for (int i = 0; i < n;) {
    if (flags[i] != 0) ++i;
  }
  flags[blockIdx.x] = 1;
}

__global__ void GridBarrier(float* data) {
  data[threadIdx.x] = 1;
  groups::this_grid().sync();
  data[blockIdx.x + threadIdx.x] += data[blockIdx.x];
}

__global__ void GridId(unsigned long long* out) {
  unsigned long long id = 0;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(id));
  out[blockIdx.x] = id;
}

__global__ void Switch(int* a, int n) {
  int v = 0;
  switch (a[n]) {
    case 0: v = a[1] * 3; break;
    case 1: v = a[2] + a[3]; break;
    case 2: a[9] = v; break;
    case 3: v = a[8] / n; break;
    case 4: v = static_cast<int>(blockIdx.x) % n; break;
    case 5: v = a[77] + 9; break;
    case 6: v = a[a[8]]; break;
    case 7:
      a[3] = a[6];
      v = 4;
      break;
  }
  a[0] = v;
}

#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) Cluster(float* data) {
  groups::this_cluster().sync();
  data[blockIdx.x] = 1;
}
#endif
