// CONV (CUDA SDK, convolutionSeparable): an image through a filter of 17 taps along its rows, then along its columns,
// again and again: each pair begins with what the one before has made. Rows and columns are touched in different
// shapes.
#include "crcs/program.h"

constexpr int kRadius = 8, kTaps = 2 * kRadius + 1;
constexpr int kResults = 8;  ///< that a thread makes
constexpr int kRowsX = 16, kRowsY = 4, kRowsTile = kRowsX * kResults, kRowsWidth = kRowsTile + 2 * kRowsX;
constexpr int kColumnsX = 16, kColumnsY = 8, kColumnsTile = kColumnsY * kResults;
constexpr int kColumnsHeight = kColumnsTile + 2 * kColumnsY + 1;  ///< odd, so that columns begin in different banks

__constant__ float taps[kTaps];

/// A tile of 128 x 4, with 16 more at both ends. Beyond the image all is zero.
__global__ void __launch_bounds__(kRowsX* kRowsY) Rows(const float* in, float* out, int width) {
  __shared__ float tile[kRowsY][kRowsWidth];
  const int row = (blockIdx.y * kRowsY + threadIdx.y) * width,
            begin = static_cast<int>(blockIdx.x) * kRowsTile - kRowsX;
#pragma unroll
  for (int i = 0; i < kRowsWidth; i += kRowsX) {
    const int x = begin + i + static_cast<int>(threadIdx.x);
    tile[threadIdx.y][i + threadIdx.x] = x >= 0 && x < width ? in[row + x] : 0;
  }
  __syncthreads();
#pragma unroll
  for (int i = kRowsX; i < kRowsX + kRowsTile; i += kRowsX) {
    float sum = 0;
#pragma unroll
    for (int k = -kRadius; k <= kRadius; ++k)
      sum = fmaf(taps[kRadius - k], tile[threadIdx.y][i + threadIdx.x + k], sum);
    out[row + begin + i + threadIdx.x] = sum;
  }
}

/// A tile of 16 x 64, with 8 more above and below, turned so that a column is a row of shared memory.
__global__ void __launch_bounds__(kColumnsX* kColumnsY) Columns(const float* in, float* out, int width, int height) {
  __shared__ float tile[kColumnsX][kColumnsHeight];
  const int x = blockIdx.x * kColumnsX + threadIdx.x, begin = static_cast<int>(blockIdx.y) * kColumnsTile - kColumnsY;
#pragma unroll
  for (int i = 0; i < kColumnsTile + 2 * kColumnsY; i += kColumnsY) {
    const int y = begin + i + static_cast<int>(threadIdx.y);
    tile[threadIdx.x][i + threadIdx.y] = y >= 0 && y < height ? in[y * width + x] : 0;
  }
  __syncthreads();
#pragma unroll
  for (int i = kColumnsY; i < kColumnsY + kColumnsTile; i += kColumnsY) {
    float sum = 0;
#pragma unroll
    for (int k = -kRadius; k <= kRadius; ++k)
      sum = fmaf(taps[kRadius - k], tile[threadIdx.x][i + threadIdx.y + k], sum);
    out[(begin + i + static_cast<int>(threadIdx.y)) * width + x] = sum;
  }
}

/// Whole numbers from 0 to 15.
std::vector<float> SmallNumbers(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.Next() % 16);
  return values;
}

/// One pass: along rows if `step` is 1, along columns if it is the width.
std::vector<float> Pass(const std::vector<float>& in, const Input<float>& filter, int width, int height, int step) {
  std::vector<float> out(in.size());
  for (int at = 0; at < width * height; ++at) {
    const int place = step == 1 ? at % width : at / width, places = step == 1 ? width : height;
    float sum = 0;
    for (int k = -kRadius; k <= kRadius; ++k) {
      sum = std::fma(filter[kRadius - k], place + k >= 0 && place + k < places ? in[at + k * step] : 0, sum);
    }
    out[at] = sum;
  }
  return out;
}

int main(int argc, char** argv) {
  // The paper: 512 x 512, 6 launches: it does not say whether each pair of them begins with the image or with the pair
  // before.
  Program program("conv", argc, argv,
                  {{"width", 256, 512, kRowsTile, 8192, kRowsTile},
                   {"height", 256, 512, kColumnsTile, 8192, kColumnsTile},
                   {"launches", 6, 6, 2, 16, 2}});
  const int width = program["width"], height = program["height"], launches = program["launches"];
  const std::size_t count = static_cast<std::size_t>(width) * height;
  const Input<float> filter(program, "filter", kTaps, [] { return SmallNumbers(kTaps, 1); });
  const Input<float> image(program, "image", count, [count] { return SmallNumbers(count, 2); });
  const DeviceArray<float> device_image(count), between(count), out(count);
  const HostArray<float> result(count);

  program.Prelude();
  CU(cudaMemcpyToSymbolAsync(taps, filter.data(), kTaps * sizeof(float), 0, cudaMemcpyHostToDevice));
  device_image.CopyFrom(image.data());
  const dim3 row_ctas(width / kRowsTile, height / kRowsY), column_ctas(width / kColumnsX, height / kColumnsTile);
  for (int launch = 0; launch < launches; launch += 2) {
    Rows<<<row_ctas, dim3(kRowsX, kRowsY)>>>(launch == 0 ? device_image : out, between, width);
    program.Launched();
    Columns<<<column_ctas, dim3(kColumnsX, kColumnsY)>>>(between, out, width, height);
    program.Launched();
  }
  out.CopyTo(result.data());
  program.Postlude(result);

  std::vector<float> want = image.Values();
  for (int launch = 0; launch < launches; ++launch)
    want = Pass(want, filter, width, height, launch % 2 == 0 ? 1 : width);
  return program.Finish(want);
}
