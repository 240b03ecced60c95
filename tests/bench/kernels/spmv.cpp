#include "tests/bench/kernels/common.h"
#include "tests/bench/kernels/sparse.h"

namespace bench {
namespace {

void NativeSpMV(const Ints& starts, const Ints& columns, const Floats& values, const Floats& x, Floats& y,
                int threads) {
  const int rows = static_cast<int>(y.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k) sum = std::fma(values[k], x[columns[k]], sum);
    y[row] = sum;
  }
}

}  // namespace

GL_BENCHMARK(spmv) {
  const int rows = Scaled(scale, 1 << 17, 128);
  auto m = MakeSparse(rows);
  auto values = std::make_shared<Floats>(RandomFloats(static_cast<int>(m->columns.size()), -1, 1, 30));
  auto x = std::make_shared<Floats>(RandomFloats(rows, -1, 1, 31));
  auto s = std::make_shared<State<float>>();
  s->out.resize(rows);
  return {
      "spmv",
      std::to_string(rows) + " rows, " + std::to_string(m->columns.size()) + " values",
      1e-4,
      [=](Device& d) {
        s->memory = {d.Upload(m->starts), d.Upload(m->columns), d.Upload(*values), d.Upload(*x), d.Allocate(rows * 4)};
      },
      [=](Device& d) {
        std::vector<Device::Argument> arguments;
        for (const auto memory : s->memory) arguments.push_back(Pointer{memory});
        arguments.push_back(rows);
        d.Launch("SpMV", {Blocks(rows, 128)}, {128}, arguments);
      },
      [=](Device& d) { return Download<float>(d, s->memory[4], rows); },
      [=](int threads) { NativeSpMV(m->starts, m->columns, *values, *x, s->out, threads); },
      [=] { return Doubles(s->out); }};
}

}  // namespace bench
