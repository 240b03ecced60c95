// FB, FilterBank (StreamIt; Figure 1c of the paper): a signal goes through a bank of filters. Of each channel: convolve
// the signal with filter H, keep every eighth sample, put zeros between those, convolve with filter F; the channels'
// results are added up. A task is a signal; its block waits at a barrier between two phases, because threads have other
// samples in the next one, in the middle an eighth of them.
#pragma once

#include "pagoda/task.h"

constexpr int kFbKeep = 8;  ///< one sample of so many is kept

struct FbArguments {
  const float *signal, *taps;  ///< filters H and F of each channel in turn
  float *filtered, *kept, *spread, *out;
  int width, filter, channels;
};

__device__ inline float FbConvolve(const float* signal, const float* taps, int n, int filter) {
  float sum = 0;
  for (int k = 0; k < filter; ++k) {
    if (n >= k) sum = fmaf(taps[k], signal[n - k], sum);
  }
  return sum;
}

__device__ inline void FbWork(const FbArguments& task) {
  const int thread = threadIdx.x, threads = blockDim.x;
  for (int channel = 0; channel < task.channels; ++channel) {
    const float* const taps = task.taps + channel * 2 * task.filter;
    for (int n = thread; n < task.width; n += threads) task.filtered[n] = FbConvolve(task.signal, taps, n, task.filter);
    __syncthreads();
    for (int n = thread; n * kFbKeep < task.width; n += threads) task.kept[n] = task.filtered[n * kFbKeep];
    __syncthreads();
    for (int n = thread; n < task.width; n += threads) task.spread[n] = n % kFbKeep == 0 ? task.kept[n / kFbKeep] : 0;
    __syncthreads();
    for (int n = thread; n < task.width; n += threads) {
      const float sum = FbConvolve(task.spread, taps + task.filter, n, task.filter);
      task.out[n] = channel == 0 ? sum : __fadd_rn(task.out[n], sum);
    }
  }
}
__global__ void FilterBank(FbArguments task) { FbWork(task); }
__global__ void FilterBankFused(const FbArguments* tasks) { FbWork(tasks[blockIdx.x]); }

/// Tap after tap over the whole signal.
PAGODA_HOST inline void FbOnHost(const float* signal, const float* taps, int width, int filter, int channels,
                                 float* out) {
  std::vector<float> filtered(width), spread(width);
  for (int channel = 0; channel < channels; ++channel) {
    const float *const h = taps + channel * 2 * filter, *const f = h + filter;
    for (int n = 0; n < width; ++n) spread[n] = 0;
    for (int n = 0; n < width; ++n) filtered[n] = 0;
    for (int k = 0; k < filter; ++k) {
      for (int n = k; n < width; ++n) filtered[n] = std::fmaf(h[k], signal[n - k], filtered[n]);
    }
    for (int n = 0; n < width; n += kFbKeep) spread[n] = filtered[n];
    for (int n = 0; n < width; ++n) filtered[n] = 0;
    for (int k = 0; k < filter; ++k) {
      for (int n = k; n < width; ++n) filtered[n] = std::fmaf(f[k], spread[n - k], filtered[n]);
    }
    for (int n = 0; n < width; ++n) out[n] = channel == 0 ? filtered[n] : out[n] + filtered[n];
  }
}

class Fb final : public KindOf<FbArguments> {
 public:
  Fb(const Options& options, const char* size)
      : KindOf(FilterBank, FilterBankFused),
        options_(options),
        width_(options[size]),
        filter_(options["taps"]),
        channels_(options["channels"]),
        taps_(UniformValues(static_cast<std::size_t>(2) * filter_ * channels_, -1, 1, options.seed())),
        device_taps_(options.form() == Form::kPthreads ? std::vector<float>() : taps_) {}

  void Describe(Task& task) const override {
    task.size = SizeOf(options_, task.index, width_ / 8, width_, kFbKeep);
    task.share = 1.0 * task.size / width_;
    task.in_bytes = task.out_bytes = sizeof(float) * task.size;
    task.scratch_bytes = sizeof(float) * 3 * task.size;
  }
  void Fill(const Task& task, char* in) const override {
    FillUniform(reinterpret_cast<float*>(in), task.size, -1, 1, RandomOf(options_, task.index));
  }
  void Compute(const Task& task, const char* in, char* out) const override {
    FbOnHost(reinterpret_cast<const float*>(in), taps_.data(), task.size, filter_, channels_,
             reinterpret_cast<float*>(out));
  }
  FbArguments ArgumentsOf(const Task& task) const override {
    float* const scratch = reinterpret_cast<float*>(task.scratch);
    return {reinterpret_cast<const float*>(task.in),
            device_taps_,
            scratch,
            scratch + task.size,
            scratch + 2 * task.size,
            reinterpret_cast<float*>(task.out),
            task.size,
            filter_,
            channels_};
  }

 private:
  const Options& options_;
  int width_, filter_, channels_;
  std::vector<float> taps_;
  DeviceArray<float> device_taps_;
};
