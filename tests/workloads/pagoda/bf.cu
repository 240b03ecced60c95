// BF, BeamFormer (StreamIt): what a sensor hears is looked for in several directions. Of each sample of a signal: four
// beams, each a filter of complex taps over the samples before it; the power of the strongest one is the result. A task
// is a signal. Each thread computes samples from one end to the other, without a barrier: long loops over taps that all
// threads read, and samples that neighbours share.
#include "pagoda/run.h"

constexpr int kBeams = 4;

struct BfArguments {
  const float* signal;
  const float2* taps;  ///< of each beam in turn
  float* power;
  int width, filter;
};

__device__ inline void BfWork(const BfArguments& task, int thread, int threads) {
  for (int n = thread; n < task.width; n += threads) {
    float real[kBeams] = {}, imaginary[kBeams] = {};
    for (int k = 0; k < task.filter && k <= n; ++k) {
      const float sample = task.signal[n - k];
#pragma unroll
      for (int beam = 0; beam < kBeams; ++beam) {
        const float2 tap = task.taps[beam * task.filter + k];
        real[beam] = fmaf(sample, tap.x, real[beam]);
        imaginary[beam] = fmaf(sample, tap.y, imaginary[beam]);
      }
    }
    float strongest = 0;
#pragma unroll
    for (int beam = 0; beam < kBeams; ++beam) {
      strongest = fmaxf(strongest, fmaf(real[beam], real[beam], __fmul_rn(imaginary[beam], imaginary[beam])));
    }
    task.power[n] = strongest;
  }
}
__global__ void BeamFormer(BfArguments task) {
  BfWork(task, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
__global__ void BeamFormerFused(const BfArguments* tasks) { BfWork(tasks[blockIdx.x], threadIdx.x, blockDim.x); }

/// Beam after beam, tap after tap, over the whole signal.
PAGODA_HOST void BfOnHost(const float* signal, const float2* taps, int width, int filter, float* power) {
  std::vector<float> real(width), imaginary(width);
  for (int n = 0; n < width; ++n) power[n] = 0;
  for (int beam = 0; beam < kBeams; ++beam) {
    for (int n = 0; n < width; ++n) real[n] = imaginary[n] = 0;
    for (int k = 0; k < filter; ++k) {
      const float2 tap = taps[beam * filter + k];
      for (int n = k; n < width; ++n) {
        real[n] = std::fmaf(signal[n - k], tap.x, real[n]);
        imaginary[n] = std::fmaf(signal[n - k], tap.y, imaginary[n]);
      }
    }
    for (int n = 0; n < width; ++n) {
      const float square = imaginary[n] * imaginary[n], both = std::fmaf(real[n], real[n], square);
      power[n] = both > power[n] ? both : power[n];
    }
  }
}

class Bf final : public KindOf<BfArguments> {
 public:
  explicit Bf(const Options& options)
      : KindOf(BeamFormer, BeamFormerFused),
        options_(options),
        taps_(Taps(options)),
        device_taps_(options.form() == Form::kPthreads ? std::vector<float2>() : taps_) {}

  void Describe(Task& task) const override {
    task.size = SizeOf(options_, task.index, options_["size"] / 8, options_["size"], 1);
    task.share = 1.0 * task.size / options_["size"];
    task.in_bytes = task.out_bytes = sizeof(float) * task.size;
  }
  void Fill(const Task& task, char* in) const override {
    FillUniform(reinterpret_cast<float*>(in), task.size, -1, 1, RandomOf(options_, task.index));
  }
  void Compute(const Task& task, const char* in, char* out) const override {
    BfOnHost(reinterpret_cast<const float*>(in), taps_.data(), task.size, options_["taps"],
             reinterpret_cast<float*>(out));
  }
  BfArguments ArgumentsOf(const Task& task) const override {
    return {reinterpret_cast<const float*>(task.in), device_taps_, reinterpret_cast<float*>(task.out), task.size,
            options_["taps"]};
  }

 private:
  /// Waves that come from four directions reach the sensor with four frequencies; the window is a cosine.
  static std::vector<float2> Taps(const Options& options) {
    const int filter = options["taps"];
    std::vector<float2> taps;
    for (int beam = 0; beam < kBeams; ++beam) {
      for (int k = 0; k < filter; ++k) {
        const double window = 0.5 - 0.5 * std::cos(2 * std::acos(-1.0) * (k + 0.5) / filter),
                     angle = 0.35 * (beam + 1) * k;
        taps.push_back({static_cast<float>(window * std::cos(angle)), static_cast<float>(window * std::sin(angle))});
      }
    }
    return taps;
  }

  const Options& options_;
  std::vector<float2> taps_;
  DeviceArray<float2> device_taps_;
};

int main(int argc, char** argv) {
  const Options options("bf", "beams of a signal, a signal a task", argc, argv, {.blocks = true},
                        {{"size", 512, 2048, 1, 1 << 20}, {"taps", 64, 64, 1, 1024}});
  const Bf kind(options);
  return Run(options, kind).Main();
}
