#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

constexpr float kWeights[5][5] = {{-0.02f, 0.01f, 0.03f, 0.01f, -0.02f},
                                  {0.02f, 0.06f, 0.11f, 0.07f, 0.01f},
                                  {0.03f, 0.12f, 0.21f, 0.13f, 0.04f},
                                  {-0.01f, 0.05f, 0.1f, 0.06f, 0.02f},
                                  {0.01f, -0.03f, 0.02f, 0.03f, -0.04f}};

/// A point near an edge: beyond it all is 0.
float PointAtEdge(const float* in, int width, int height, int x, int y) {
  float sum = 0;
  for (int dy = 0; dy < 5; ++dy) {
    for (int dx = 0; dx < 5; ++dx) {
      const int column = x + dx - 2, row = y + dy - 2;
      if (column >= 0 && column < width && row >= 0 && row < height)
        sum = std::fma(kWeights[dy][dx], in[row * width + column], sum);
    }
  }
  return sum;
}

void NativeConvolution(const Floats& in, Floats& out, int width, int height, int threads) {
  const float* const from = in.data();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int y = 0; y < height; ++y) {
    float* const __restrict to = &out[static_cast<std::size_t>(y) * width];
    const bool inside = y >= 2 && y < height - 2;
    const int first = inside ? 2 : width, last = width - 2;
    for (int x = 0; x < std::min(first, width); ++x) to[x] = PointAtEdge(from, width, height, x, y);
    const float* const rows = from + (y - 2) * width - 2;
    for (int x = first; x < last; ++x) {
      float sum = 0;
#pragma GCC unroll 5
      for (int dy = 0; dy < 5; ++dy)
#pragma GCC unroll 5
        for (int dx = 0; dx < 5; ++dx) sum = std::fma(kWeights[dy][dx], rows[dy * width + x + dx], sum);
      to[x] = sum;
    }
    for (int x = std::max(first, last); x < width; ++x) to[x] = PointAtEdge(from, width, height, x, y);
  }
}

}  // namespace

GL_BENCHMARK(convolution) {
  const int width = 1024, height = Scaled(scale, 512, 8);
  auto in = std::make_shared<Floats>(RandomFloats(width * height, -1, 1, 41));
  auto s = std::make_shared<State<float>>();
  s->out.resize(in->size());
  return {"convolution",
          std::to_string(width) + " x " + std::to_string(height) + ", 5 x 5",
          1e-5,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(in->size() * 4)};
          },
          [=](Device& d) {
            d.Launch("Convolution", {Blocks(width, 32), Blocks(height, 8)}, {32, 8},
                     {Pointer{s->memory[0]}, Pointer{s->memory[1]}, width, height});
          },
          [=](Device& d) { return Download<float>(d, s->memory[1], in->size()); },
          [=](int threads) { NativeConvolution(*in, s->out, width, height, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
