// Five kernels whose cycles on GPGPU-Sim 4.2 are known (docs/timing.md), one a run: reference_kernels NAME. Each checks
// its result.
#include "app.h"

__global__ void VectorAdd(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

constexpr int kTile = 16;
__global__ void MatMul(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * kTile + x, row = blockIdx.y * kTile + y;
  float sum = 0;
  for (int t = 0; t < n; t += kTile) {
    tile_a[y][x] = a[row * n + t + x];
    tile_b[y][x] = b[(t + y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile_a[y][k] * tile_b[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void Reduce(const int* in, int* out, int n) {
  __shared__ int part[256];
  const int t = threadIdx.x, i = blockIdx.x * 512 + t;
  part[t] = (i < n ? in[i] : 0) + (i + 256 < n ? in[i + 256] : 0);
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, part[0]);
}

__global__ void Histogram(const int* in, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i] & 255], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void FmaLoop(float* out, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = i * 1e-6f, y = x + 1, z = x + 2, w = x + 3;
  for (int r = 0; r < rounds; ++r) {
    x = x * 0.999f + 0.5f;
    y = y * 0.998f + 0.25f;
    z = z * 0.997f + 0.125f;
    w = w * 0.996f + 0.0625f;
  }
  out[i] = x + y + z + w;
}

void RunVectorAdd() {
  const int n = 1 << 20;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = static_cast<float>(i % 1000), b[i] = static_cast<float>(i % 77);
  Buffer<float> da(a), db(b), dc(n);
  VectorAdd<<<n / 256, 256>>>(da, db, dc, n);
  CU_LAUNCHED();
  const std::vector<float> c = dc.Read();
  for (int i = 0; i < n; ++i) Same("sum", i, c[i], a[i] + b[i]);
}

void RunMatMul() {
  const int n = 256;
  std::vector<float> a(n * n), b(n * n);
  for (int i = 0; i < n * n; ++i) a[i] = static_cast<float>(i % 13), b[i] = static_cast<float>(i % 7);
  Buffer<float> da(a), db(b), dc(n * n);
  MatMul<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(da, db, dc, n);
  CU_LAUNCHED();
  const std::vector<float> c = dc.Read();
  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column) {
      float want = 0;  // small integers: exact in any order
      for (int k = 0; k < n; ++k) want += a[row * n + k] * b[k * n + column];
      Same("product", row * n + column, c[row * n + column], want);
    }
  }
}

void RunReduce() {
  const int n = 1 << 20;
  std::vector<int> in(n);
  int want = 0;
  for (int i = 0; i < n; ++i) want += in[i] = i % 255;
  Buffer<int> din(in), out(1);
  Reduce<<<n / 512, 256>>>(din, out, n);
  CU_LAUNCHED();
  Same("sum", 0, out.Read()[0], want);
}

void RunHistogram() {
  const int n = 1 << 19;
  std::vector<int> in(n);
  std::vector<unsigned> want(256);
  Random random(5);
  for (int i = 0; i < n; ++i) ++want[(in[i] = static_cast<int>(random.Next() >> 8)) & 255];
  Buffer<int> din(in);
  Buffer<unsigned> bins(256);
  Histogram<<<160, 256>>>(din, bins, n);
  CU_LAUNCHED();
  for (int i = 0; i < 256; ++i) Same("bin", i, bins.Read()[i], want[i]);
}

void RunFmaLoop() {
  const int ctas = 160, rounds = 256;
  Buffer<float> out(ctas * 256);
  FmaLoop<<<ctas, 256>>>(out, rounds);
  CU_LAUNCHED();
  const std::vector<float> got = out.Read();
  for (int i = 0; i < ctas * 256; i += 997) {
    float v[4] = {i * 1e-6f, i * 1e-6f + 1, i * 1e-6f + 2, i * 1e-6f + 3};
    const float by[4] = {0.999f, 0.998f, 0.997f, 0.996f}, plus[4] = {0.5f, 0.25f, 0.125f, 0.0625f};
    for (int r = 0; r < rounds; ++r) {
      for (int k = 0; k < 4; ++k) v[k] = std::fma(v[k], by[k], plus[k]);
    }
    Near("loop", i, got[i], v[0] + v[1] + v[2] + v[3], 1e-6);
  }
}

int main(int argc, char** argv) {
  const char* const names[] = {"vectoradd", "matmul", "reduce", "histogram", "fmaloop"};
  void (*const runs[])() = {RunVectorAdd, RunMatMul, RunReduce, RunHistogram, RunFmaLoop};
  bool ran = false;
  for (int i = 0; i < 5; ++i) {
    if (argc > 1 && std::strcmp(argv[1], names[i]) != 0) continue;
    runs[i]();
    ran = true;
  }
  if (!ran) {
    std::printf("usage: %s [vectoradd|matmul|reduce|histogram|fmaloop]\n", argv[0]);
    return 2;
  }
  return Verdict();
}
