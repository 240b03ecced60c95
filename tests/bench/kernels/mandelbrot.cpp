#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeMandelbrot(Ints& out, int width, int height, int most, int threads) {
  const double step = 3.0 / width;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double real = std::fma(x + 0.5, step, -2.2), imaginary = std::fma(y + 0.5 - 0.5 * height, step, 0.01);
      double a = 0, b = 0;
      int rounds = 0;
      while (rounds < most && std::fma(a, a, b * b) <= 4.0) {
        const double next = std::fma(a, a, std::fma(-b, b, real));
        b = std::fma(a + a, b, imaginary);
        a = next;
        ++rounds;
      }
      out[y * width + x] = rounds;
    }
  }
}

}  // namespace

GL_BENCHMARK(mandelbrot) {
  const int width = 512, height = Scaled(scale, 256, 16), most = 256;
  auto s = std::make_shared<State<int>>();
  s->out.resize(static_cast<std::size_t>(width) * height);
  return {"mandelbrot",
          std::to_string(width) + " x " + std::to_string(height) + ", " + std::to_string(most) + " rounds",
          0,
          [=](Device& d) { s->memory = {d.Allocate(s->out.size() * 4)}; },
          [=](Device& d) {
            d.Launch("Mandelbrot", {width / 16, Blocks(height, 16)}, {16, 16},
                     {Pointer{s->memory[0]}, width, height, most});
          },
          [=](Device& d) { return Download<int>(d, s->memory[0], s->out.size()); },
          [=](int threads) { NativeMandelbrot(s->out, width, height, most, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
