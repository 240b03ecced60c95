#include <bit>

#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

using Halves = std::vector<std::uint16_t>;

constexpr int kChannels = 64;

/// Of numbers that f16 holds exactly and in full precision, and of 0.
std::uint16_t ToHalf(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return v == 0 ? 0 : static_cast<std::uint16_t>((bits >> 16 & 0x8000) | (((bits >> 13) & 0x3ffff) - (112 << 10)));
}
float FromHalf(std::uint16_t half) {
  const float magnitude = std::bit_cast<float>((half & 0x7fffu) << 13) * 0x1p112f;
  return half & 0x8000 ? -magnitude : magnitude;
}

/// `n` multiples of 1/128, of magnitude below `most`.
std::shared_ptr<Halves> MakeHalves(int n, int most, unsigned seed) {
  auto v = std::make_shared<Halves>(n);
  for (int i = 0; i < n; ++i)
    (*v)[i] = ToHalf(static_cast<float>(static_cast<int>(Hash(i * 3 + seed) % (256 * most)) - 128 * most) / 128);
  return v;
}

/// Keys as columns, values as rows: both are gone through along what is next to each other.
void NativeAttention(const Halves& queries, const Halves& keys, const Halves& values, Floats& out, int n, int heads,
                     int threads) {
  Floats columns(static_cast<std::size_t>(kChannels) * n), rows(static_cast<std::size_t>(n) * kChannels);
  for (int head = 0; head < heads; ++head) {
    const std::size_t start = static_cast<std::size_t>(head) * n * kChannels;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
      for (int d = 0; d < kChannels; ++d)
        for (int j = 0; j < n; ++j) columns[d * n + j] = FromHalf(keys[start + j * kChannels + d]);
#pragma omp for schedule(static)
      for (int i = 0; i < n * kChannels; ++i) rows[i] = FromHalf(values[start + i]);
      Floats weights(n);
#pragma omp for schedule(static)
      for (int i = 0; i < n; ++i) {
        float* const __restrict weight = weights.data();
        std::memset(weight, 0, n * sizeof(float));
        for (int d = 0; d < kChannels; ++d) {
          const float query = FromHalf(queries[start + i * kChannels + d]) * 0.125f;
          const float* const __restrict column = &columns[d * n];
          for (int j = 0; j < n; ++j) weight[j] = std::fma(query, column[j], weight[j]);
        }
        float most = weight[0], sum = 0;
#pragma omp simd reduction(max : most)
        for (int j = 0; j < n; ++j) most = std::max(most, weight[j]);
        for (int j = 0; j < n; ++j) sum += weight[j] = std::exp(weight[j] - most);
        float result[kChannels] = {};
        for (int j = 0; j < n; ++j) {
          const float* const __restrict row = &rows[j * kChannels];
          for (int d = 0; d < kChannels; ++d) result[d] = std::fma(weight[j], row[d], result[d]);
        }
        for (int d = 0; d < kChannels; ++d) out[start + i * kChannels + d] = result[d] / sum;
      }
    }
  }
}

}  // namespace

GL_BENCHMARK(attention) {
  const int n = Scaled(std::sqrt(scale), 512, 64), heads = 2, size = n * heads * kChannels;
  auto queries = MakeHalves(size, 4, 46), keys = MakeHalves(size, 1, 47), values = MakeHalves(size, 1, 48);
  auto s = std::make_shared<State<float>>();
  s->out.resize(size);
  return {"attention",
          std::to_string(heads) + " heads, " + std::to_string(n) + " x " + std::to_string(kChannels),
          1e-2,
          [=](Device& d) {
            s->memory = {d.Upload(*queries), d.Upload(*keys), d.Upload(*values), d.Allocate(size * 4)};
          },
          [=](Device& d) {
            std::vector<Device::Argument> arguments;
            for (const auto memory : s->memory) arguments.push_back(Pointer{memory});
            arguments.push_back(n);
            d.Launch("Attention", {n / 64u, heads}, {128}, arguments);
          },
          [=](Device& d) { return Download<float>(d, s->memory[3], size); },
          [=](int threads) { NativeAttention(*queries, *keys, *values, s->out, n, heads, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
