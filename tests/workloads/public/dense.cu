// Arithmetic on dense data:
// product      a matrix product as the CUDA sample matrixMul has it: a block of 32x32 threads makes a tile of 32x32
// results, one a
//              thread, from tiles of both matrices in shared memory
// intensity    two chains of multiply-adds on each pair of elements that a thread loads (gpu-roofline of
// RRZE-HPC/gpu-benches)
#include "choice.h"

constexpr int kTile = 32, kThreads = 256;

/// c = a * b; a has `depth` columns, b and c have `width`; all are multiples of kTile.
__global__ void Product(const float* a, const float* b, float* c, int depth, int width) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int column = blockIdx.x * kTile + threadIdx.x, row = blockIdx.y * kTile + threadIdx.y;
  float sum = 0;
  for (int begin = 0; begin < depth; begin += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * depth + begin + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(begin + threadIdx.y) * width + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  c[row * width + column] = sum;
}

template <int kMultiplyAdds>
__global__ void Intensity(const float* a, const float* b, float* sums, int elements) {
  a += threadIdx.x + blockIdx.x * kThreads * elements;
  b += threadIdx.x + blockIdx.x * kThreads * elements;
  float sum = 0;
  for (int i = 0; i < elements; i += 2) {
    const float x = a[i * kThreads], y = b[i * kThreads];
    float one = x - y, other = a[(i + 1) * kThreads] - b[(i + 1) * kThreads];
#pragma unroll
    for (int j = 0; j < kMultiplyAdds; ++j) {
      one = one * x - y;
      other = other * x - y;
    }
    sum += one + other;
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

void RunProduct(const Sizes& sizes) {
  const int height = sizes["height"] / kTile * kTile, width = sizes["width"] / kTile * kTile;
  const int depth = sizes["depth"] / kTile * kTile;
  if (height == 0 || width == 0 || depth == 0) Refuse("--height, --width and --depth must be 32 or more");
  const auto a = UniformValues(std::size_t{1} * height * depth, -1, 1, 1);
  const auto b = UniformValues(std::size_t{1} * depth * width, -1, 1, 2);
  const Buffer<float> device_a(a), device_b(b), device_c(std::size_t{1} * height * width);
  Product<<<dim3(width / kTile, height / kTile), dim3(kTile, kTile)>>>(device_a, device_b, device_c, depth, width);
  CU_LAUNCHED();
  const std::vector<float> c = device_c.Read();
  for (std::size_t i = 0; i < c.size(); i += CheckEvery(c.size(), 10'000)) {
    double want = 0;
    for (int j = 0; j < depth; ++j)
      want += static_cast<double>(a[i / width * depth + j]) * b[std::size_t{1} * j * width + i % width];
    Near("c", static_cast<long>(i), c[i], want, 1e-4, 1e-5 * std::sqrt(static_cast<double>(depth)));
  }
}

template <int kMultiplyAdds>
void RunIntensity(const Sizes& sizes) {
  const int blocks = sizes["blocks"], elements = sizes["elements"] / 2 * 2;
  const auto a = UniformValues(std::size_t{1} * blocks * kThreads * elements, 0.2f, 0.8f, 1);
  const auto b = UniformValues(a.size(), 0.2f, 0.8f, 2);
  const Buffer<float> device_a(a), device_b(b), sums(blocks);
  Intensity<kMultiplyAdds><<<blocks, kThreads>>>(device_a, device_b, sums, elements);
  CU_LAUNCHED();
  const std::vector<float> got = sums.Read();
  for (int block = 0; block < blocks; ++block) {
    double want = 0;
    for (int i = 0; i < elements; ++i) {
      const std::size_t at = std::size_t{1} * (block * elements + i) * kThreads;
      const std::size_t pair = std::size_t{1} * (block * elements + i / 2 * 2) * kThreads;
      double value = static_cast<double>(a[at]) - b[at];
      for (int j = 0; j < kMultiplyAdds; ++j) value = value * a[pair] - b[pair];
      want += value;
    }
    Near("sum", block, got[block], want, 1e-3);
  }
}

int main(int argc, char** argv) {
  using Function = void (*)(const Sizes&);
  const Function run = Chosen<Function>(argc, argv,
                                        {{"product", RunProduct},
                                         {"intensity-1", RunIntensity<1>},
                                         {"intensity-16", RunIntensity<16>},
                                         {"intensity-64", RunIntensity<64>},
                                         {"intensity-256", RunIntensity<256>}});
  run(Sizes(
      argc - 1, argv + 1,
      {{"height", 128, 512}, {"width", 128, 1024}, {"depth", 64, 512}, {"blocks", 264, 1056}, {"elements", 8, 64}}));
  return Verdict();
}
