// MM: dense matrix product in single precision. A CTA of 256 threads makes a tile of 32x32 results, four a thread, from
// tiles of both matrices in shared memory.
#include "workload.h"

constexpr int kTile = 32, kRows = 8, kPerThread = kTile / kRows, kDepth = 16;

/// c (m x n) = a (m x k) * b (k x n); all sizes are multiples of kTile.
/// Bounded to what the published occupancies leave: four CTAs of 256 threads in 32768 registers.
__global__ void __maxnreg__(32) MatrixMultiply(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float tile_a[kTile][kDepth], tile_b[kDepth][kTile];
  const int column = blockIdx.x * kTile + threadIdx.x, row = blockIdx.y * kTile + threadIdx.y;
  float sum[kPerThread] = {};
  const int thread = threadIdx.y * kTile + threadIdx.x, a_row = thread / kDepth, a_column = thread % kDepth;
  for (int begin = 0; begin < k; begin += kDepth) {
    for (int i = 0; i < kTile; i += kTile * kRows / kDepth)
      tile_a[a_row + i][a_column] = a[(blockIdx.y * kTile + a_row + i) * k + begin + a_column];
    for (int i = 0; i < kDepth; i += kRows)
      tile_b[threadIdx.y + i][threadIdx.x] = b[(begin + threadIdx.y + i) * n + column];
    __syncthreads();
    for (int j = 0; j < kDepth; ++j) {
      const float value = tile_b[j][threadIdx.x];
      for (int i = 0; i < kPerThread; ++i) sum[i] += tile_a[threadIdx.y + i * kRows][j] * value;
    }
    __syncthreads();
  }
  for (int i = 0; i < kPerThread; ++i) c[(row + i * kRows) * n + column] = sum[i];
}

std::vector<float> RandomMatrix(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> matrix(count);
  for (float& value : matrix) value = random.Uniform(-1, 1);
  return matrix;
}

int main(int argc, char** argv) {
  // The paper: 8192 x 2048 times 2048 x 2048.
  const Sizes sizes(argc, argv, {{"m", 512, 8192}, {"n", 1024, 2048}, {"k", 64, 2048}});
  const int m = sizes["m"] / kTile * kTile, n = sizes["n"] / kTile * kTile, k = sizes["k"] / kTile * kTile;
  const auto a = RandomMatrix(static_cast<std::size_t>(m) * k, 1), b = RandomMatrix(static_cast<std::size_t>(k) * n, 2);
  const Buffer<float> device_a(a), device_b(b), device_c(static_cast<std::size_t>(m) * n);
  MatrixMultiply<<<dim3(n / kTile, m / kTile), dim3(kTile, kRows)>>>(device_a, device_b, device_c, n, k);
  CU_LAUNCHED();
  const std::vector<float> c = device_c.Read();
  for (std::size_t i = 0; i < c.size(); i += CheckEvery(c.size(), 100'000)) {
    const std::size_t row = i / n, column = i % n;
    double want = 0;
    for (int j = 0; j < k; ++j)
      want += static_cast<double>(a[row * k + j]) * b[static_cast<std::size_t>(j) * n + column];
    Near("c", static_cast<long>(i), c[i], want, 1e-4, 1e-4 * std::sqrt(static_cast<double>(k)) * 0.1);
  }
  PrintDigest("c", c);
  return Verdict();
}
