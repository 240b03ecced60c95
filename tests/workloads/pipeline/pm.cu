// PM (HPEC Challenge, pattern match): which of a library of range profiles a measured one is, and how far shifted and
// how much louder. The first kernel brings the templates to the noise floor of the measured profile; the second one
// finds each template's least weighted error over all shifts, then over some gains; the third one finds the template
// with the least error of all. A warp has a template: small data and few CTAs, which compute. All values are decibels.
#include "pipeline/program.h"

constexpr int kWarps = 4, kThreads = kWarps * 32;
constexpr int kShifts = 21, kGains = 11;
constexpr int kMostBins = 256;
constexpr float kTemplateFloor = -6, kFloor = 2;  ///< noise of the templates, and of the profile
constexpr float kClear = kFloor + 3;              ///< bins above are a target's
constexpr float kGainStep = 0.25f;

struct Match {
  float error;
  int shift, gain;  ///< gain: number of the step
};

__device__ inline float Sum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

/// Whether a bin of a template, with this value, counts in means: 1 or 0.
__device__ inline float Clear(float value) { return value > kClear ? 1 : 0; }

/// Sum of `measure` of a template's bins.
template <class Measure>
__device__ inline float SumOver(int bins, Measure measure) {
  float sum = 0;
  for (int bin = threadIdx.x % 32; bin < bins; bin += 32) sum += measure(bin);
  return Sum(sum);
}

/// A bin counts for as much as it is above the floor, and 1.
__host__ __device__ inline float Weight(float value) { return value > kFloor ? value - kFloor + 1 : 1; }

/// Noise is power: what the profile has more of it is added as such.
__global__ void __maxnreg__(kFermiRegisters)
    Normalise(const float* templates, float* normals, float* means, int count, int bins) {
  const int mine = blockIdx.x * kWarps + threadIdx.x / 32;
  if (mine >= count) return;
  const float more = exp10f(kFloor / 10) - exp10f(kTemplateFloor / 10);
  for (int bin = threadIdx.x % 32; bin < bins; bin += 32) {
    normals[mine * bins + bin] = 10 * log10f(exp10f(templates[mine * bins + bin] / 10) + more);
  }
  __syncwarp();
  const float* const normal = normals + mine * bins;
  const float clear = SumOver(bins, [=](int bin) { return Clear(normal[bin]); });
  const float sum = SumOver(bins, [=](int bin) { return Clear(normal[bin]) * normal[bin]; });
  if (threadIdx.x % 32 == 0) means[mine] = sum / fmaxf(clear, 1);
}

__global__ void __maxnreg__(kFermiRegisters)
    Compare(const float* normals, const float* means, const float* profile, Match* matches, int count, int bins) {
  __shared__ float my_profile[kMostBins + kShifts - 1], my_normals[kWarps][kMostBins];
  const int warp = threadIdx.x / 32, mine = blockIdx.x * kWarps + warp;
  for (int i = threadIdx.x; i < bins + kShifts - 1; i += kThreads) my_profile[i] = profile[i];
  for (int bin = threadIdx.x % 32; bin < bins && mine < count; bin += 32)
    my_normals[warp][bin] = normals[mine * bins + bin];
  __syncthreads();
  if (mine >= count) return;
  const float *const normal = my_normals[warp], *const at = my_profile;
  const float clear = fmaxf(SumOver(bins, [=](int bin) { return Clear(normal[bin]); }), 1), mean = means[mine];
  const float weights = SumOver(bins, [=](int bin) { return Weight(normal[bin]); });
  // Weighted mean of the squared differences of the profile and the template, so many decibels louder.
  const auto error_of = [=](int shift, float louder) {
    return SumOver(bins,
                   [=](int bin) {
                     const float difference = normal[bin] + louder - at[shift + bin];
                     return Weight(normal[bin]) * difference * difference;
                   }) /
           weights;
  };
  Match best = {INFINITY, 0, 0};
  float louder = 0;
#pragma unroll 1
  for (int shift = 0; shift < kShifts; ++shift) {
    const float gain = SumOver(bins, [=](int bin) { return Clear(normal[bin]) * at[shift + bin]; }) / clear - mean;
    const float error = error_of(shift, gain);
    if (error >= best.error) continue;
    best = {error, shift, kGains / 2};
    louder = gain;
  }
#pragma unroll 1
  for (int gain = 0; gain < kGains; ++gain) {
    if (gain == kGains / 2) continue;
    const float error = error_of(best.shift, fmaf(kGainStep, gain - kGains / 2, louder));
    if (error < best.error) best = {error, best.shift, gain};
  }
  if (threadIdx.x % 32 == 0) matches[mine] = best;
}

/// One CTA. Of equal errors the first template's is taken.
__global__ void __maxnreg__(kFermiRegisters) Least(const Match* matches, int* found, int count) {
  __shared__ float errors[kThreads];
  __shared__ int indices[kThreads];
  float error = INFINITY;
  int index = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    if (matches[i].error < error) error = matches[i].error, index = i;
  }
  errors[threadIdx.x] = error, indices[threadIdx.x] = index;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const float other = errors[threadIdx.x + half];
    const int other_index = indices[threadIdx.x + half];
    if (other < errors[threadIdx.x] || (other == errors[threadIdx.x] && other_index < indices[threadIdx.x])) {
      errors[threadIdx.x] = other, indices[threadIdx.x] = other_index;
    }
  }
  if (threadIdx.x == 0) *found = indices[0];
}

/// Noise with some peaks in it.
std::vector<float> Templates(int count, int bins, int index) {
  Random random(800 + index);
  std::vector<float> values(static_cast<std::size_t>(count) * bins);
  for (float& value : values)
    value = random.Next() % 8 == 0 ? random.Uniform(5, 25) : kTemplateFloor + random.Uniform(-3, 3);
  return values;
}

/// Template `index` % count, shifted by some bins and a little louder, in noise.
std::vector<float> Profile(const std::vector<float>& templates, int count, int bins, int index) {
  Random random(850 + index);
  const int shift = index * 5 % kShifts, from = index % count * bins;
  std::vector<float> profile(bins + kShifts - 1);
  for (float& value : profile) value = kFloor + random.Uniform(-2, 2);
  for (int bin = 0; bin < bins; ++bin) {
    if (templates[from + bin] > kClear)
      profile[shift + bin] = templates[from + bin] + 1.3f + random.Uniform(-0.5f, 0.5f);
  }
  return profile;
}

struct Set {
  Set(const Options& options, int index)
      : templates(Templates(options["templates"], options["bins"], index)),
        profile(Profile(templates.host, options["templates"], options["bins"], index)),
        normals(templates.host.size()),
        means(options["templates"]),
        matches(options["templates"]),
        found(1) {}
  const Input<float> templates, profile;
  const DeviceArray<float> normals, means;
  const DeviceArray<Match> matches;
  const DeviceArray<int> found;
};

/// Of the bins of `values` where the template is clear of noise; 0 if it never is.
double Mean(const float* normal, const float* values, int bins) {
  double sum = 0;
  int clear = 0;
  for (int bin = 0; bin < bins; ++bin) {
    if (normal[bin] <= kClear) continue;
    sum += values[bin];
    ++clear;
  }
  return sum / std::max(clear, 1);
}

double ErrorOnHost(const float* normal, const float* profile, double gain, int bins) {
  double errors = 0, weights = 0;
  for (int bin = 0; bin < bins; ++bin) {
    errors += Weight(normal[bin]) * std::pow(normal[bin] + gain - profile[bin], 2);
    weights += Weight(normal[bin]);
  }
  return errors / weights;
}

/// Least error of a template over all shifts, then over all gains; `error_of_choice` is that of the shift and the gain
/// that were chosen.
double LeastError(const float* normal, const std::vector<float>& profile, int bins, const Match& choice,
                  double& error_of_choice) {
  double least = INFINITY;
  int best = 0;
  const auto louder = [&](int shift) { return Mean(normal, &profile[shift], bins) - Mean(normal, normal, bins); };
  const auto error = [&](int shift, int gain) {
    return ErrorOnHost(normal, &profile[shift], louder(shift) + kGainStep * (gain - kGains / 2), bins);
  };
  for (int shift = 0; shift < kShifts; ++shift) {
    const double here = error(shift, kGains / 2);
    if (here < least) best = shift, least = here;
  }
  for (int gain = 0; gain < kGains; ++gain) least = std::min(least, error(best, gain));
  error_of_choice = error(choice.shift, choice.gain);
  return least;
}

int main(int argc, char** argv) {
  const Options options("pm", argc, argv, {{"templates", 32, 128, 1, 4096}, {"bins", 64, 128, 8, kMostBins}});
  const int count = options["templates"], bins = options["bins"], ctas = Ctas(count, kWarps);
  Pipeline<Set> pipeline(options);
  pipeline.Stage("normalise", Normalise, ctas, kThreads,
                 [=](const Set& set, auto launch) { launch(set.templates, set.normals, set.means, count, bins); });
  pipeline.Stage("compare", Compare, ctas, kThreads, [=](const Set& set, auto launch) {
    launch(set.normals, set.means, set.profile, set.matches, count, bins);
  });
  pipeline.Stage("least", Least, 1, kThreads,
                 [=](const Set& set, auto launch) { launch(set.matches, set.found, count); });
  pipeline.Run();

  int index = 0;
  for (const Set& set : pipeline.sets()) {
    const std::vector<float> normals = pipeline.Result(set.normals), means = pipeline.Result(set.means);
    const std::vector<Match> matches = pipeline.Result(set.matches);
    const int found = pipeline.Result(set.found)[0];
    const double more = std::pow(10, kFloor / 10.0) - std::pow(10, kTemplateFloor / 10.0);
    for (int i = 0; i < count; ++i) {
      // Errors are sums of numbers up to 1000 and above 0, so relative. Templates as the device has normalised them,
      // once that has been checked: whether a bin is clear of noise must not depend on the last bit.
      const float* const normal = &normals[i * bins];
      for (int at = i * bins; at < (i + 1) * bins; ++at) {
        Near("normal", at, normals[at], 10 * std::log10(std::pow(10, set.templates.host[at] / 10.0) + more), 0, 1e-4);
      }
      Near("mean", i, means[i], Mean(normal, normal, bins), 1e-5, 1e-5);
      double error_of_choice = 0;
      const double least = LeastError(normal, set.profile.host, bins, matches[i], error_of_choice);
      Near("error", i, matches[i].error, least, 1e-3);
      Near("error of the choice", i, error_of_choice, least, 1e-3);
    }
    Same("template", index, found, index % count);
    Same("shift", index, matches[found].shift, index * 5 % kShifts);
    ++index;
  }
  return pipeline.Finish();
}
