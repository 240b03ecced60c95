// HG (CUDA samples, histogram): how many pixels of an image are how bright, in 256 bins. The first kernel prepares,
// with one CTA: it clears the bins and lays them between the darkest and the brightest of the 256 pixels in the middle.
// The second one counts all pixels: it does little but read 16 bytes each, and hands on next to nothing. That the
// second kernel is the long one is the paper's: 30 times as long. With --reversed the first one counts, in bins that
// are laid and clear, and the second one makes running sums of them.
#include "pipeline/program.h"

constexpr int kThreads = 256, kBins = 256;
constexpr int kEach = 4;  ///< pixels that a thread counts
/// For each time that counting is to take as long as preparing (--ratio): what nine memory channels deliver meanwhile.
constexpr int kPixelsOfRatio = 20 * kThreads * kEach;
static_assert(kThreads == kBins, "each thread has one bin");

/// These round the same way on the host. Bins are `y` for each step in brightness, from `x` on; what is darker than the
/// first bin is in it, and what is brighter than the last one in that.
__host__ __device__ inline float2 ScaleOf(float low, float high) { return {low, kBins / (high - low)}; }
__host__ __device__ inline float Brightness(float4 pixel) {
  return fmaf(0.25f, pixel.x, fmaf(0.5f, pixel.y, 0.25f * pixel.z));
}
__host__ __device__ inline int Bin(float brightness, float2 scale) {
  const int bin = static_cast<int>((brightness - scale.x) * scale.y);
  return bin < 0 ? 0 : bin < kBins ? bin : kBins - 1;
}

/// One pixel a thread, from `first` on.
__global__ void __launch_bounds__(kThreads) Prepare(const float4* pixels, float2* scale, unsigned* bins, int first) {
  __shared__ float low[kThreads], high[kThreads];
  bins[threadIdx.x] = 0;
  low[threadIdx.x] = high[threadIdx.x] = Brightness(pixels[first + threadIdx.x]);
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    low[threadIdx.x] = fminf(low[threadIdx.x], low[threadIdx.x + half]);
    high[threadIdx.x] = fmaxf(high[threadIdx.x], high[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) *scale = ScaleOf(low[0], high[0]);
}

/// kEach pixels a thread; there are as many.
__global__ void __launch_bounds__(kThreads) Count(const float4* pixels, const float2* scale, unsigned* bins) {
  __shared__ unsigned of_cta[kBins];
  const int first = blockIdx.x * kThreads * kEach + threadIdx.x;
  float brightness[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) brightness[i] = Brightness(pixels[first + i * kThreads]);
  of_cta[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kEach; ++i) atomicAdd(&of_cta[Bin(brightness[i], *scale)], 1);
  __syncthreads();
  if (of_cta[threadIdx.x] != 0) atomicAdd(&bins[threadIdx.x], of_cta[threadIdx.x]);
}

/// Each bin and all below it.
__global__ void __launch_bounds__(kThreads) RunningSums(const unsigned* bins, unsigned* sums) {
  __shared__ unsigned values[kBins];
  const int bin = threadIdx.x;
  values[bin] = bins[bin];
  for (int step = 1; step < kBins; step *= 2) {
    __syncthreads();
    const unsigned sum = values[bin] + (bin >= step ? values[bin - step] : 0);
    __syncthreads();
    values[bin] = sum;
  }
  sums[bin] = values[bin];
}

/// As many pixels of each brightness, so that a warp's fall into different bins.
std::vector<float4> Pixels(int count, int index) {
  Random random(300 + index);
  std::vector<float4> pixels(count);
  for (float4& pixel : pixels) {
    const float grey = random.Uniform(0, 1);
    pixel = {grey, random.Uniform(0.9f, 1.1f) * grey, grey, 1};
  }
  return pixels;
}

struct Set {
  Set(const Options& options, int index)
      : pixels(Pixels(options["ratio"] * kPixelsOfRatio, index)),
        scale(std::vector<float2>{ScaleOf(0.1f, 0.9f)}),
        bins(std::vector<unsigned>(kBins, options.Has("reversed") ? 0 : ~0u)),
        sums(std::vector<unsigned>(kBins)) {}
  const Input<float4> pixels;
  const DeviceArray<float2> scale;
  const DeviceArray<unsigned> bins, sums;
};

float2 ScaleOnHost(const std::vector<float4>& pixels, bool reversed) {
  if (reversed) return ScaleOf(0.1f, 0.9f);
  float low = INFINITY, high = 0;
  for (std::size_t at = pixels.size() / 2 - kThreads / 2; at < pixels.size() / 2 + kThreads / 2; ++at) {
    low = std::min(low, Brightness(pixels[at]));
    high = std::max(high, Brightness(pixels[at]));
  }
  return ScaleOf(low, high);
}

int main(int argc, char** argv) {
  const Options options("hg", argc, argv, {{"ratio", 8, 30, 1, 1000}}, {"reversed"});
  const int count = options["ratio"] * kPixelsOfRatio, ctas = count / (kThreads * kEach),
            middle = count / 2 - kThreads / 2;
  const bool reversed = options.Has("reversed");
  Pipeline<Set> pipeline(options);
  if (!reversed) {
    pipeline.Stage("prepare", Prepare, 1, kThreads,
                   [=](const Set& set, auto launch) { launch(set.pixels, set.scale, set.bins, middle); });
  }
  pipeline.Stage("count", Count, ctas, kThreads,
                 [](const Set& set, auto launch) { launch(set.pixels, set.scale, set.bins); });
  if (reversed)
    pipeline.Stage("sums", RunningSums, 1, kThreads, [](const Set& set, auto launch) { launch(set.bins, set.sums); });
  pipeline.Run();

  for (const Set& set : pipeline.sets()) {
    const float2 scale = pipeline.Result(set.scale)[0], want_scale = ScaleOnHost(set.pixels.host, reversed);
    const std::vector<unsigned> bins = pipeline.Result(set.bins), sums = pipeline.Result(set.sums);
    std::vector<unsigned> want(kBins);
    for (const float4& pixel : set.pixels.host) ++want[Bin(Brightness(pixel), want_scale)];
    Same("low", 0, scale.x, want_scale.x);
    Same("scale", 0, scale.y, want_scale.y);
    unsigned sum = 0;
    for (int bin = 0; bin < kBins; ++bin) {
      sum += reversed ? want[bin] : 0;
      Same("bin", bin, bins[bin], want[bin]);
      Same("sum", bin, sums[bin], sum);
    }
  }
  return pipeline.Finish();
}
