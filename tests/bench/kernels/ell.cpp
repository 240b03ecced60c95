#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

/// Some rows at a time, whose sums stay in the cache while their places are gone through.
void NativeEll(const Ints& columns, const Floats& values, const Floats& x, Floats& y, int width, int threads) {
  constexpr int kRows = 512;
  const int rows = static_cast<int>(y.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int first = 0; first < rows; first += kRows) {
    const int count = std::min(kRows, rows - first);
    const float* const __restrict from = x.data();
    float* const __restrict sums = &y[first];
    std::memset(sums, 0, count * sizeof(float));
    for (int k = 0; k < width; ++k) {
      const int* const __restrict column = &columns[static_cast<std::size_t>(k) * rows + first];
      const float* const __restrict value = &values[static_cast<std::size_t>(k) * rows + first];
      for (int row = 0; row < count; ++row)
        if (column[row] >= 0) sums[row] = std::fma(value[row], from[column[row]], sums[row]);
    }
  }
}

}  // namespace

GL_BENCHMARK(ell) {
  const int rows = Scaled(scale, 1 << 17, 128), width = 16;
  auto columns = std::make_shared<Ints>(static_cast<std::size_t>(rows) * width, -1);
  for (int row = 0; row < rows; ++row) {
    const int count = 8 + static_cast<int>(Hash(row) % (width - 7));
    for (int k = 0; k < count; ++k) {
      const unsigned h = Hash(row * 31 + k);
      (*columns)[static_cast<std::size_t>(k) * rows + row] = static_cast<int>((k % 2 ? h : row + h % 64) % rows);
    }
  }
  auto values = std::make_shared<Floats>(RandomFloats(rows * width, -1, 1, 43));
  auto x = std::make_shared<Floats>(RandomFloats(rows, -1, 1, 44));
  auto s = std::make_shared<State<float>>();
  s->out.resize(rows);
  return {"ell",
          std::to_string(rows) + " rows, up to " + std::to_string(width) + " values",
          1e-4,
          [=](Device& d) {
            s->memory = {d.Upload(*columns), d.Upload(*values), d.Upload(*x), d.Allocate(rows * 4)};
          },
          [=](Device& d) {
            std::vector<Device::Argument> arguments;
            for (const auto memory : s->memory) arguments.push_back(Pointer{memory});
            arguments.insert(arguments.end(), {rows, width});
            d.Launch("Ell", {Blocks(rows, 128)}, {128}, arguments);
          },
          [=](Device& d) { return Download<float>(d, s->memory[3], rows); },
          [=](int threads) { NativeEll(*columns, *values, *x, s->out, width, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
