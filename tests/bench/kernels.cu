// The benchmark kernels as CUDA. kernels.cl and native.cpp compute the same.
#if defined(__clang__) && !defined(__CUDACC_VER_MAJOR__)
#include "tests/bench/clang_cuda.h"
#endif

#define KERNEL extern "C" __global__ void

KERNEL Copy(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

KERNEL VectorAdd(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

// Four independent chains of fused multiply-adds.
KERNEL FmaLoop(float* out, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i * 1e-6f, b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < rounds; ++k) {
    a = fmaf(a, 0.999f, 0.5f);
    b = fmaf(b, 0.998f, 0.25f);
    c = fmaf(c, 0.997f, 0.125f);
    d = fmaf(d, 0.996f, 0.0625f);
  }
  out[i] = a + b + c + d;
}

// One Jacobi step on a grid whose border stays.
KERNEL Stencil(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  const int i = y * width + x;
  out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

KERNEL MatMulNaive(const float* a, const float* b, float* c, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(a[y * n + k], b[k * n + x], sum);
  c[y * n + x] = sum;
}

// Tiles of 16 x 16 in shared memory; n is a multiple of 16.
KERNEL MatMulTiled(const float* a, const float* b, float* c, int n) {
  __shared__ float sa[16][16], sb[16][16];
  const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  float sum = 0;
  for (int tile = 0; tile < n; tile += 16) {
    sa[ty][tx] = a[y * n + tile + tx];
    sb[ty][tx] = b[(tile + ty) * n + x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) sum = fmaf(sa[ty][k], sb[k][tx], sum);
    __syncthreads();
  }
  c[y * n + x] = sum;
}

// Two elements a thread, a tree in shared memory down to one warp, shuffles for the rest, one atomic a block of 256.
KERNEL Reduce(const int* in, int* out, int n) {
  __shared__ int sums[256];
  const int t = threadIdx.x, i = blockIdx.x * 512 + t;
  int sum = (i < n ? in[i] : 0) + (i + 256 < n ? in[i + 256] : 0);
  sums[t] = sum;
  __syncthreads();
  for (int step = 128; step >= 32; step /= 2) {
    if (t < step) sums[t] = sum = sum + sums[t + step];
    __syncthreads();
  }
  if (t < 32) {
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (t == 0) atomicAdd(out, sum);
  }
}

// 256 bins in shared memory, merged into global memory.
KERNEL Histogram(const unsigned* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&bins[in[i] & 255], 1u);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

// Accelerations of all bodies; x, y, z, mass in four arrays, tiles of 256 bodies in shared memory; n a multiple of 256.
KERNEL NBody(const float* px, const float* py, const float* pz, const float* mass, float* ax, float* ay, float* az,
             int n) {
  __shared__ float sx[256], sy[256], sz[256], sm[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  const float x = px[i], y = py[i], z = pz[i];
  float fx = 0, fy = 0, fz = 0;
  for (int tile = 0; tile < n; tile += 256) {
    sx[t] = px[tile + t], sy[t] = py[tile + t], sz[t] = pz[tile + t], sm[t] = mass[tile + t];
    __syncthreads();
    for (int k = 0; k < 256; ++k) {
      const float dx = sx[k] - x, dy = sy[k] - y, dz = sz[k] - z;
      const float distance2 = dx * dx + dy * dy + dz * dz + 0.01f;
      const float inverse = 1.0f / sqrtf(distance2), factor = sm[k] * inverse * inverse * inverse;
      fx += dx * factor, fy += dy * factor, fz += dz * factor;
    }
    __syncthreads();
  }
  ax[i] = fx, ay[i] = fy, az[i] = fz;
}

// Prices of European options; the normal distribution by a polynomial (Abramowitz and Stegun 26.2.17).
__device__ static float Normal(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  const float tail =
      0.39894228f * expf(-0.5f * d * d) *
      (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}
KERNEL BlackScholes(const float* price, const float* strike, const float* years, float* call, float* put, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float rate = 0.02f, volatility = 0.3f, s = price[i], x = strike[i], t = years[i], root = sqrtf(t);
  const float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root),
              d2 = d1 - volatility * root;
  const float n1 = Normal(d1), n2 = Normal(d2), discount = x * expf(-rate * t);
  call[i] = s * n1 - discount * n2;
  put[i] = discount * (1.0f - n2) - s * (1.0f - n1);
}

// Sparse matrix (CSR) times vector, a row a thread.
KERNEL SpMV(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum = fmaf(values[k], x[columns[k]], sum);
  y[row] = sum;
}

// One level of a breadth-first search; *changed is set when a vertex was found.
KERNEL BfsLevel(const int* starts, const int* edges, int* distance, int* changed, int level, int n) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n || distance[v] != level) return;
  for (int k = starts[v]; k < starts[v + 1]; ++k) {
    const int to = edges[k];
    if (distance[to] < 0) distance[to] = level + 1, *changed = 1;
  }
}
KERNEL BfsInit(int* distance, int n) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < n) distance[v] = v == 0 ? 0 : -1;
}

// One step of a bitonic sort, a pair a thread.
KERNEL BitonicStep(unsigned* keys, int size, int stride) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = 2 * t - (t & (stride - 1)), j = i + stride;
  const unsigned a = keys[i], b = keys[j];
  if ((a > b) == ((i & size) == 0)) keys[i] = b, keys[j] = a;
}
KERNEL CopyKeys(const unsigned* in, unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

// Steps of the Collatz sequence of scattered starting values: each lane leaves its loop at another time.
KERNEL Collatz(unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = (static_cast<unsigned>(i) * 2654435761u >> 12) + 1, steps = 0;
  while (v != 1 && steps < 1000) v = v & 1 ? 3 * v + 1 : v / 2, ++steps;
  out[i] = steps;
}
