#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

/// Square blocks, so that lines of both matrices are used whole while they are in the cache.
void NativeTranspose(const Floats& in, Floats& out, int width, int height, int threads) {
  constexpr int kBlock = 64;
  const float* const __restrict from = in.data();
  float* const __restrict to = out.data();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int left = 0; left < width; left += kBlock) {
    for (int top = 0; top < height; top += kBlock) {
      const int right = std::min(left + kBlock, width), bottom = std::min(top + kBlock, height);
      for (int x = left; x < right; ++x)
        for (int y = top; y < bottom; ++y) to[x * height + y] = from[y * width + x];
    }
  }
}

}  // namespace

GL_BENCHMARK(transpose) {
  const int width = 1024, height = Scaled(scale, 1024, 8);
  auto in = std::make_shared<Floats>(RandomFloats(width * height, -1, 1, 40));
  auto s = std::make_shared<State<float>>();
  s->out.resize(in->size());
  return {"transpose",
          std::to_string(width) + " x " + std::to_string(height),
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(in->size() * 4)};
          },
          [=](Device& d) {
            d.Launch("Transpose", {Blocks(width, 32), Blocks(height, 32)}, {32, 8},
                     {Pointer{s->memory[0]}, Pointer{s->memory[1]}, width, height});
          },
          [=](Device& d) { return Download<float>(d, s->memory[1], in->size()); },
          [=](int threads) { NativeTranspose(*in, s->out, width, height, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
