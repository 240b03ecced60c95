#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeStencil(const Floats& in, Floats& out, int width, int height, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int y = 1; y < height - 1; ++y) {
    const float* __restrict row = &in[static_cast<std::size_t>(y) * width];
    float* __restrict to = &out[static_cast<std::size_t>(y) * width];
    for (int x = 1; x < width - 1; ++x)
      to[x] = 0.5f * row[x] + 0.125f * (row[x - 1] + row[x + 1] + row[x - width] + row[x + width]);
  }
}

}  // namespace

GL_BENCHMARK(stencil) {
  const int width = 1024, height = Scaled(scale, 1024, 8), steps = 8;
  auto in = std::make_shared<Floats>(RandomFloats(width * height, 0, 1, 3));
  auto s = std::make_shared<State<float>>();
  return {"stencil",
          std::to_string(width) + " x " + std::to_string(height) + ", " + std::to_string(steps) + " steps",
          1e-5,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Upload(*in), d.Upload(*in)};
          },
          [=](Device& d) {
            // The first step reads the input, so that every repetition computes the same.
            for (int step = 0; step < steps; ++step)
              d.Launch(
                  "Stencil", {width / 32, Blocks(height, 8)}, {32, 8},
                  {Pointer{s->memory[step == 0 ? 2 : step % 2]}, Pointer{s->memory[(step + 1) % 2]}, width, height});
          },
          [=](Device& d) { return Download<float>(d, s->memory[steps % 2], static_cast<std::size_t>(width) * height); },
          [=](int threads) {
            if (s->out.empty()) s->out = *in, s->scratch = *in;
            for (int step = 0; step < steps; ++step) {
              NativeStencil(step == 0  ? *in
                            : step % 2 ? s->scratch
                                       : s->out,
                            step % 2 ? s->out : s->scratch, width, height, threads);
            }
          },
          [=] { return Doubles(steps % 2 ? s->scratch : s->out); }};
}

}  // namespace bench
