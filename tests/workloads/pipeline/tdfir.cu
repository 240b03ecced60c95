// TDFIR (HPEC Challenge, time-domain finite impulse responses): a bank of filters of complex numbers, each over a
// signal of its own, and then the power of what comes out. A CTA of 64 threads makes as many outputs of one filter; its
// taps and the inputs that they meet are in shared memory, where each is used by all threads: it computes, and more SMs
// make it faster by as much.
#include "pipeline/program.h"

constexpr int kThreads = 64, kMostTaps = 128;

/// out[n] = sum over k of taps[k] * in[n - k]; before its beginning the signal is zero. Grid: parts of the signal,
/// filters.
__global__ void __launch_bounds__(kThreads)
    Filter(const float2* in, const float2* taps, float2* out, int samples, int tap_count) {
  __shared__ float2 my_taps[kMostTaps], window[kMostTaps - 1 + kThreads];
  const int begin = blockIdx.x * kThreads, filter = blockIdx.y, history = tap_count - 1, at = begin + threadIdx.x;
  for (int k = threadIdx.x; k < tap_count; k += kThreads) my_taps[k] = taps[filter * tap_count + k];
  for (int i = threadIdx.x; i < history + kThreads; i += kThreads) {
    const int from = begin - history + i;
    window[i] = from >= 0 && from < samples ? in[filter * samples + from] : float2{0, 0};
  }
  __syncthreads();
  float real = 0, imaginary = 0;
#pragma unroll 8
  for (int k = 0; k < tap_count; ++k) {
    const float2 tap = my_taps[k], x = window[history + threadIdx.x - k];
    real = fmaf(tap.x, x.x, fmaf(-tap.y, x.y, real));
    imaginary = fmaf(tap.x, x.y, fmaf(tap.y, x.x, imaginary));
  }
  if (at < samples) out[filter * samples + at] = {real, imaginary};
}

__global__ void __launch_bounds__(kThreads) Power(const float2* in, const float* gains, float* power, int samples) {
  const int filter = blockIdx.y, at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= samples) return;
  const float2 x = in[filter * samples + at];
  power[filter * samples + at] = gains[filter] * fmaf(x.x, x.x, x.y * x.y);
}

std::vector<float2> ComplexValues(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float2> values(count);
  for (float2& value : values) {
    value.x = random.Uniform(-1, 1);
    value.y = random.Uniform(-1, 1);
  }
  return values;
}

struct Set {
  Set(const Options& options, int index)
      : signals(ComplexValues(static_cast<std::size_t>(options["filters"]) * options["samples"], 500 + index)),
        filtered(signals.host.size()),
        power(signals.host.size()) {}
  const Input<float2> signals;
  const DeviceArray<float2> filtered;
  const DeviceArray<float> power;
};

int main(int argc, char** argv) {
  const Options options(
      "tdfir", argc, argv,
      {{"filters", 14, 24, 1, 1024}, {"samples", 896, 2048, 1, 65'536}, {"taps", 12, 64, 1, kMostTaps}});
  const int filters = options["filters"], samples = options["samples"], tap_count = options["taps"];
  const Input<float2> taps(ComplexValues(static_cast<std::size_t>(filters) * tap_count, 1));
  const Input<float> gains(UniformValues(filters, 0.5f, 2, 2));
  Pipeline<Set> pipeline(options);
  const float2* const device_taps = taps;
  const float* const device_gains = gains;
  const dim3 ctas(Ctas(samples, kThreads), filters);
  pipeline.Stage("filter", Filter, ctas, kThreads, [=](const Set& set, auto launch) {
    launch(set.signals, device_taps, set.filtered, samples, tap_count);
  });
  pipeline.Stage("power", Power, ctas, kThreads,
                 [=](const Set& set, auto launch) { launch(set.filtered, device_gains, set.power, samples); });
  pipeline.Run();

  for (const Set& set : pipeline.sets()) {
    const std::vector<float2> filtered = pipeline.Result(set.filtered);
    const std::vector<float> power = pipeline.Result(set.power);
    for (int at = 0; at < filters * samples; ++at) {
      const int filter = at / samples;
      double real = 0, imaginary = 0;
      for (int k = 0; k < tap_count && k <= at % samples; ++k) {
        const float2 tap = taps.host[filter * tap_count + k], x = set.signals.host[at - k];
        real += static_cast<double>(tap.x) * x.x - static_cast<double>(tap.y) * x.y;
        imaginary += static_cast<double>(tap.x) * x.y + static_cast<double>(tap.y) * x.x;
      }
      // At most 256 products of numbers below 1, whose sum is below 64 but by the rarest of chances: 1e-4 is more than
      // floats lose.
      Near("real", at, filtered[at].x, real, 0, 1e-4);
      Near("imaginary", at, filtered[at].y, imaginary, 0, 1e-4);
      Near("power", at, power[at], gains.host[filter] * (real * real + imaginary * imaginary), 1e-4, 1e-3);
    }
  }
  return pipeline.Finish();
}
