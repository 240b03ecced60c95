// BS: Black-Scholes prices of European options, in closed form: logarithm, root, exponential and a polynomial for the
// normal distribution. Three streams in, two out; threads stride over the options by the size of the grid.
#include "workload.h"

constexpr int kThreads = 128;
constexpr float kRate = 0.02f, kVolatility = 0.30f;

/// Normal distribution by the polynomial of Abramowitz and Stegun, 26.2.17.
__device__ float Normal(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  const float polynomial =
      k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228040143267794f * expf(-0.5f * d * d) * polynomial;
  return d > 0 ? 1.0f - tail : tail;
}

// Bounded to what the published occupancies leave: eight CTAs of 128 threads in 32768 registers.
__global__ void __maxnreg__(32)
    BlackScholes(float* call, float* put, const float* price, const float* strike, const float* years, int options) {
#pragma unroll 1
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < options; i += gridDim.x * kThreads) {
    const float s = price[i], x = strike[i], t = years[i];
    const float root = sqrtf(t);
    const float d1 = (logf(s / x) + (kRate + 0.5f * kVolatility * kVolatility) * t) / (kVolatility * root);
    const float n1 = Normal(d1), n2 = Normal(d1 - kVolatility * root);
    const float discounted = x * expf(-kRate * t);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
  }
}

double NormalReference(double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); }

std::vector<float> Between(int count, float low, float high, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Uniform(low, high);
  return values;
}

int main(int argc, char** argv) {
  // The paper: 40 million options with 128 x 16384 threads, about 19 a thread.
  const Sizes sizes(argc, argv, {{"ctas", 1024, 16384}, {"options", 1024 * kThreads * 4, 40'000'000}});
  const int options = sizes["options"];
  const auto price = Between(options, 5, 30, 1), strike = Between(options, 1, 100, 2),
             years = Between(options, 0.25f, 10, 3);
  const Buffer<float> device_price(price), device_strike(strike), device_years(years), device_call(options),
      device_put(options);
  BlackScholes<<<sizes["ctas"], kThreads>>>(device_call, device_put, device_price, device_strike, device_years,
                                            options);
  CU_LAUNCHED();
  const std::vector<float> call = device_call.Read(), put = device_put.Read();
  for (int i = 0; i < options; i += static_cast<int>(CheckEvery(options, 1'000'000))) {
    const double s = price[i], x = strike[i], t = years[i];
    const double d1 = (std::log(s / x) + (kRate + 0.5 * kVolatility * kVolatility) * t) / (kVolatility * std::sqrt(t));
    const double d2 = d1 - kVolatility * std::sqrt(t), discounted = x * std::exp(-kRate * t);
    Near("call", i, call[i], s * NormalReference(d1) - discounted * NormalReference(d2), 0, 1e-4);
    Near("put", i, put[i], discounted * NormalReference(-d2) - s * NormalReference(-d1), 0, 1e-4);
  }
  PrintDigest("call", call);
  PrintDigest("put", put);
  return Verdict();
}
