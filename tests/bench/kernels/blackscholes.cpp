#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

float Normal(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * std::fabs(d));
  const float tail =
      0.39894228f * std::exp(-0.5f * d * d) *
      (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}

void NativeBlackScholes(const Floats& price, const Floats& strike, const Floats& years, Floats& call, Floats& put,
                        int threads) {
  const int n = static_cast<int>(price.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) {
    const float rate = 0.02f, volatility = 0.3f, s = price[i], x = strike[i], t = years[i], root = std::sqrt(t);
    const float d1 = (std::log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root),
                d2 = d1 - volatility * root;
    const float n1 = Normal(d1), n2 = Normal(d2), discount = x * std::exp(-rate * t);
    call[i] = s * n1 - discount * n2;
    put[i] = discount * (1.0f - n2) - s * (1.0f - n1);
  }
}

}  // namespace

GL_BENCHMARK(blackscholes) {
  const int n = Scaled(scale, 1 << 20, 256);
  auto price = std::make_shared<Floats>(RandomFloats(n, 5, 30, 20)),
       strike = std::make_shared<Floats>(RandomFloats(n, 1, 100, 21)),
       years = std::make_shared<Floats>(RandomFloats(n, 0.25f, 10, 22));
  auto s = std::make_shared<State<float>>();
  s->out.resize(n), s->scratch.resize(n);
  return {"blackscholes",
          std::to_string(n) + " options",
          1e-3,
          [=](Device& d) {
            s->memory = {d.Upload(*price), d.Upload(*strike), d.Upload(*years), d.Allocate(n * 4), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            std::vector<Device::Argument> arguments;
            for (const auto memory : s->memory) arguments.push_back(Pointer{memory});
            arguments.push_back(n);
            d.Launch("BlackScholes", {Blocks(n, 128)}, {128}, arguments);
          },
          [=](Device& d) { return Download<float>(d, s->memory[3], n); },
          [=](int threads) { NativeBlackScholes(*price, *strike, *years, s->out, s->scratch, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
