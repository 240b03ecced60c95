#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeJacobi3d(const Floats& in, Floats& out, int width, int height, int depth, int threads) {
  const int plane = width * height;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int z = 1; z < depth - 1; ++z) {
    for (int y = 1; y < height - 1; ++y) {
      const float* __restrict row = &in[static_cast<std::size_t>(z) * plane + y * width];
      float* __restrict to = &out[static_cast<std::size_t>(z) * plane + y * width];
      for (int x = 1; x < width - 1; ++x)
        to[x] =
            (1.0f / 6) * (row[x - 1] + row[x + 1] + row[x - width] + row[x + width] + row[x - plane] + row[x + plane]);
    }
  }
}

}  // namespace

GL_BENCHMARK(jacobi3d) {
  const int width = 128, height = 128, depth = Scaled(scale, 64, 4), steps = 4;
  const std::size_t points = static_cast<std::size_t>(width) * height * depth;
  auto in = std::make_shared<Floats>(RandomFloats(static_cast<int>(points), 0, 1, 42));
  auto s = std::make_shared<State<float>>();
  s->out = s->scratch = *in;
  // The first step reads the input, so that every repetition computes the same; the last one writes `out`.
  return {"jacobi3d",
          std::to_string(width) + " x " + std::to_string(height) + " x " + std::to_string(depth) + ", " +
              std::to_string(steps) + " steps",
          1e-5,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Upload(*in), d.Upload(*in)};
          },
          [=](Device& d) {
            for (int step = 0; step < steps; ++step)
              d.Launch("Jacobi3d", {width / 32, Blocks(height, 8), static_cast<unsigned>(depth)}, {32, 8},
                       {Pointer{s->memory[step == 0 ? 2 : step % 2]}, Pointer{s->memory[(step + 1) % 2]}, width, height,
                        depth});
          },
          [=](Device& d) { return Download<float>(d, s->memory[steps % 2], points); },
          [=](int threads) {
            for (int step = 0; step < steps; ++step)
              NativeJacobi3d(step == 0  ? *in
                             : step % 2 ? s->scratch
                                        : s->out,
                             step % 2 ? s->out : s->scratch, width, height, depth, threads);
          },
          [=] { return Doubles(steps % 2 ? s->scratch : s->out); }};
}

}  // namespace bench
