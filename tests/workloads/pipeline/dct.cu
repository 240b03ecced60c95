// DCT (CUDA samples, dct8x8): the core of JPEG on images, in three kernels: cosine transform of every 8x8 block,
// quantisation with the standard's table for luminance, inverse transform. A CTA of 64 threads has one block of the
// image; all that a kernel makes, a whole plane, is what the next one reads. The transforms compute, the quantiser
// waits for memory.
#include "pipeline/program.h"

constexpr int kSide = 8, kThreads = kSide * kSide;
/// ITU-T T.81, table K.1.
constexpr int kSteps[kThreads] = {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
                                  14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
                                  18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
                                  49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};

__constant__ float cosine_rows[kThreads];  ///< row u: the values of cosine u at the eight places
__constant__ float steps[kThreads];

/// One element of a product of matrices: out[y][x] = sum over k of left[y][k] * right[k][x].
__device__ inline float Product(const float (&left)[kSide][kSide], const float (&right)[kSide][kSide]) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kSide; ++k) sum = fmaf(left[threadIdx.y][k], right[k][threadIdx.x], sum);
  return sum;
}

/// C * block * C', with C the cosines, or C' * block * C. `before` and `after` are added to what is read and to what is
/// written.
template <bool kInverse>
__device__ inline void Transform(const float* in, float* out, int width, float before, float after) {
  __shared__ float block[kSide][kSide], half[kSide][kSide], left[kSide][kSide], right[kSide][kSide];
  const int at = (blockIdx.y * kSide + threadIdx.y) * width + blockIdx.x * kSide + threadIdx.x;
  const float cosine = cosine_rows[threadIdx.y * kSide + threadIdx.x];
  (kInverse ? right : left)[threadIdx.y][threadIdx.x] = cosine;
  (kInverse ? left : right)[threadIdx.x][threadIdx.y] = cosine;
  block[threadIdx.y][threadIdx.x] = in[at] + before;
  __syncthreads();
  half[threadIdx.y][threadIdx.x] = Product(left, block);
  __syncthreads();
  out[at] = Product(half, right) + after;
}

__global__ void __launch_bounds__(kThreads) Forward(const float* image, float* coefficients, int width) {
  Transform<false>(image, coefficients, width, -128, 0);
}

__global__ void __launch_bounds__(kThreads) Quantise(const float* coefficients, float* rounded, int width) {
  const int at = (blockIdx.y * kSide + threadIdx.y) * width + blockIdx.x * kSide + threadIdx.x;
  const float step = steps[threadIdx.y * kSide + threadIdx.x];
  rounded[at] = rintf(coefficients[at] / step) * step;
}

__global__ void __launch_bounds__(kThreads) Inverse(const float* rounded, float* image, int width) {
  Transform<true>(rounded, image, width, 0, 128);
}

/// Smooth hills with some noise, in the range of a pixel.
std::vector<float> Image(int width, int height, int index) {
  Random random(100 + index);
  const float across = random.Uniform(10, 40), down = random.Uniform(10, 40);
  std::vector<float> image(static_cast<std::size_t>(width) * height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const float hills = 128 + 50 * std::sin(x / across) + 40 * std::cos(y / down) + random.Uniform(-30, 30);
      image[static_cast<std::size_t>(y) * width + x] = std::floor(hills);
    }
  }
  return image;
}

struct Set {
  Set(const Options& options, int index)
      : image(Image(options["width"], options["height"], index)),
        coefficients(image.host.size()),
        rounded(image.host.size()),
        restored(image.host.size()) {}
  const Input<float> image;
  const DeviceArray<float> coefficients, rounded, restored;
};

using Block = double[kSide][kSide];

void Multiply(const Block& left, const Block& right, Block& out) {
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      out[y][x] = 0;
      for (int k = 0; k < kSide; ++k) out[y][x] += left[y][k] * right[k][x];
    }
  }
}

struct Cosines {
  Cosines() {
    for (int u = 0; u < kSide; ++u) {
      for (int x = 0; x < kSide; ++x) {
        rows[u][x] = turned[x][u] =
            (u == 0 ? std::sqrt(0.125) : 0.5) * std::cos((2 * x + 1) * u * std::acos(-1.0) / 16);
      }
    }
  }
  Block rows, turned;
};

/// The block at `first` of the three planes. Values are below 1024 in magnitude and sums have eight terms, twice: 1e-3
/// is some ten times what floats lose. A coefficient that lies half-way between two steps, but for as much, may have
/// become either.
void CheckBlock(const Cosines& cosines, const float* image, const float* coefficients, const float* rounded,
                const float* restored, int width) {
  Block pixels, half, want;
  for (int i = 0; i < kThreads; ++i) pixels[i / kSide][i % kSide] = image[i / kSide * width + i % kSide] - 128.0;
  Multiply(cosines.rows, pixels, half);
  Multiply(half, cosines.turned, want);
  Block kept;
  for (int i = 0; i < kThreads; ++i) {
    const int at = i / kSide * width + i % kSide;
    const double coefficient = want[i / kSide][i % kSide], level = rounded[at] / kSteps[i];
    Near("coefficient", at, coefficients[at], coefficient, 0, 1e-3);
    Note(level == std::rint(level) && std::fabs(coefficient - rounded[at]) <= kSteps[i] * 0.5 + 1e-3, "rounded", at,
         rounded[at], coefficient);
    kept[i / kSide][i % kSide] = rounded[at];
  }
  Multiply(cosines.turned, kept, half);
  Multiply(half, cosines.rows, want);
  for (int i = 0; i < kThreads; ++i) {
    const int at = i / kSide * width + i % kSide;
    Near("restored", at, restored[at], want[i / kSide][i % kSide] + 128, 0, 1e-3);
  }
}

int main(int argc, char** argv) {
  const Options options("dct", argc, argv,
                        {{"width", 128, 512, kSide, 4096, kSide}, {"height", 104, 512, kSide, 4096, kSide}});
  const int width = options["width"], height = options["height"];
  const Cosines cosines;
  std::vector<float> table;
  for (int i = 0; i < kThreads; ++i) table.push_back(static_cast<float>(cosines.rows[i / kSide][i % kSide]));
  const std::vector<float> float_steps(kSteps, kSteps + kThreads);
  CU(cudaMemcpyToSymbol(cosine_rows, table.data(), sizeof(float) * kThreads));
  CU(cudaMemcpyToSymbol(steps, float_steps.data(), sizeof(float) * kThreads));

  Pipeline<Set> pipeline(options);
  const dim3 ctas(width / kSide, height / kSide), threads(kSide, kSide);
  pipeline.Stage("forward", Forward, ctas, threads,
                 [=](const Set& set, auto launch) { launch(set.image, set.coefficients, width); });
  pipeline.Stage("quantise", Quantise, ctas, threads,
                 [=](const Set& set, auto launch) { launch(set.coefficients, set.rounded, width); });
  pipeline.Stage("inverse", Inverse, ctas, threads,
                 [=](const Set& set, auto launch) { launch(set.rounded, set.restored, width); });
  pipeline.Run();

  for (const Set& set : pipeline.sets()) {
    const std::vector<float> coefficients = pipeline.Result(set.coefficients), rounded = pipeline.Result(set.rounded);
    const std::vector<float> restored = pipeline.Result(set.restored);
    for (int y = 0; y < height; y += kSide) {
      for (int x = 0; x < width; x += kSide) {
        const std::size_t first = static_cast<std::size_t>(y) * width + x;
        CheckBlock(cosines, &set.image.host[first], &coefficients[first], &rounded[first], &restored[first], width);
      }
    }
  }
  return pipeline.Finish();
}
