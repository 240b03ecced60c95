#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeSoftmax(const Floats& in, Floats& out, int rows, int columns, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int r = 0; r < rows; ++r) {
    const float* const __restrict row = &in[static_cast<std::size_t>(r) * columns];
    float* const __restrict to = &out[static_cast<std::size_t>(r) * columns];
    float most = row[0], sum = 0;
#pragma omp simd reduction(max : most)
    for (int i = 0; i < columns; ++i) most = std::max(most, row[i]);
    for (int i = 0; i < columns; ++i) to[i] = std::exp(row[i] - most);
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < columns; ++i) sum += to[i];
    const float scale = 1.0f / sum;
    for (int i = 0; i < columns; ++i) to[i] *= scale;
  }
}

}  // namespace

GL_BENCHMARK(softmax) {
  const int rows = Scaled(scale, 1024, 8), columns = 1024;
  auto in = std::make_shared<Floats>(RandomFloats(rows * columns, -6, 6, 45));
  auto s = std::make_shared<State<float>>();
  s->out.resize(in->size());
  return {"softmax",
          std::to_string(rows) + " rows of " + std::to_string(columns),
          1e-4,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(in->size() * 4)};
          },
          [=](Device& d) {
            d.Launch("Softmax", {static_cast<unsigned>(rows)}, {256},
                     {Pointer{s->memory[0]}, Pointer{s->memory[1]}, columns});
          },
          [=](Device& d) { return Download<float>(d, s->memory[1], in->size()); },
          [=](int threads) { NativeSoftmax(*in, s->out, rows, columns, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
