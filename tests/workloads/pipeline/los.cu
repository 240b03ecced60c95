// LOS (CUDA samples, lineOfSight): which points of a ray over a terrain an observer at its beginning sees: the slope at
// which a point appears, the highest slope up to each point, and whether a point's own slope is that one. The maximum
// needs three kernels of its own: inside each CTA's part, over the parts, and the last one, which puts both together.
// Nearly all that is read was written by the kernel before, once, a line after the other.
#include "pipeline/program.h"

constexpr int kThreads = 128, kManyThreads = 512, kRows = 4;
constexpr float kEye = 12;  ///< height of the observer

/// The terrain has kRows rows; the ray goes from the first one, at its beginning, to the last one. All operations round
/// the same way on the host.
__host__ __device__ inline float Slope(const float* terrain, int length, int at) {
  const float y = static_cast<float>(at) * (kRows - 1) / static_cast<float>(length);
  const int row = static_cast<int>(y);
  const float* const near = terrain + static_cast<size_t>(row) * length + at;
  const float height = fmaf(near[length] - near[0], y - static_cast<float>(row), near[0]);
  return (height - kEye) / static_cast<float>(at + 1);
}

__global__ void __launch_bounds__(kThreads) Slopes(const float* terrain, float* slopes, int length) {
  const int at = blockIdx.x * kThreads + threadIdx.x;
  if (at < length) slopes[at] = Slope(terrain, length, at);
}

/// The highest value of a thread's lane and those below it, or -infinity below all.
__device__ inline float HighestUpTo(float value) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float below = __shfl_up_sync(~0u, value, step);
    if (threadIdx.x % 32 >= step) value = fmaxf(value, below);
  }
  return value;
}

/// The highest slope from the beginning of a CTA's part up to each point; `highest` is that of the whole part.
__global__ void __launch_bounds__(kThreads) ScanParts(const float* slopes, float* up_to, float* highest, int length) {
  __shared__ float of_warp[kThreads / 32];
  const int at = blockIdx.x * kThreads + threadIdx.x, warp = threadIdx.x / 32;
  float value = HighestUpTo(at < length ? slopes[at] : -INFINITY);
  if (threadIdx.x % 32 == 31) of_warp[warp] = value;
  __syncthreads();
  for (int before = 0; before < warp; ++before) value = fmaxf(value, of_warp[before]);
  if (at < length) up_to[at] = value;
  if (threadIdx.x == kThreads - 1) highest[blockIdx.x] = value;
}

/// What is highest before each part: one CTA, a part a thread at a time.
__global__ void __launch_bounds__(kManyThreads) ScanHighest(const float* highest, float* before, int parts) {
  constexpr int kWarps = kManyThreads / 32;
  __shared__ float of_warp[kWarps];
  const int warp = threadIdx.x / 32;
  float so_far = -INFINITY;
#pragma unroll 1
  for (int first = 0; first < parts; first += kManyThreads) {
    const int part = first + threadIdx.x;
    float value = HighestUpTo(part < parts ? highest[part] : -INFINITY);
    if (threadIdx.x % 32 == 31) of_warp[warp] = value;
    __syncthreads();
    for (int lower = 0; lower < warp; ++lower) value = fmaxf(value, of_warp[lower]);
    value = fmaxf(value, so_far);
    if (part + 1 < parts) before[part + 1] = value;
    if (part == 0) before[0] = -INFINITY;
    for (int i = 0; i < kWarps; ++i) so_far = fmaxf(so_far, of_warp[i]);
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads)
    Look(const float* slopes, const float* up_to, const float* before, unsigned* visible, int length) {
  const int at = blockIdx.x * kThreads + threadIdx.x;
  if (at < length) visible[at] = slopes[at] >= fmaxf(up_to[at], before[blockIdx.x]);
}

/// Ever higher mountains, so that the ray meets new ones up to its end, with rubble on them.
std::vector<float> Terrain(int length, int index) {
  Random random(200 + index);
  const float period = random.Uniform(300, 900);
  std::vector<float> terrain(static_cast<std::size_t>(length) * kRows);
  for (int row = 0; row < kRows; ++row) {
    for (int x = 0; x < length; ++x) {
      const float mountain = 1 + std::sin(static_cast<float>(x) / period + static_cast<float>(row) * 0.1f);
      terrain[static_cast<std::size_t>(row) * length + x] =
          0.05f * static_cast<float>(x) * mountain + random.Uniform(0, 4);
    }
  }
  return terrain;
}

struct Set {
  Set(const Options& options, int index)
      : terrain(Terrain(options["length"], index)),
        slopes(options["length"]),
        up_to(options["length"]),
        highest(Ctas(options["length"], kThreads)),
        before(Ctas(options["length"], kThreads)),
        visible(options["length"]) {}
  const Input<float> terrain;
  const DeviceArray<float> slopes, up_to, highest, before;
  const DeviceArray<unsigned> visible;
};

int main(int argc, char** argv) {
  const Options options("los", argc, argv, {{"length", 25'600, 131'072, 1, 4'194'304}});
  const int length = options["length"], parts = Ctas(length, kThreads);
  Pipeline<Set> pipeline(options);
  pipeline.Stage("slopes", Slopes, parts, kThreads,
                 [=](const Set& set, auto launch) { launch(set.terrain, set.slopes, length); });
  pipeline.Stage("scan-parts", ScanParts, parts, kThreads,
                 [=](const Set& set, auto launch) { launch(set.slopes, set.up_to, set.highest, length); });
  pipeline.Stage("scan-highest", ScanHighest, 1, kManyThreads,
                 [=](const Set& set, auto launch) { launch(set.highest, set.before, parts); });
  pipeline.Stage("look", Look, parts, kThreads,
                 [=](const Set& set, auto launch) { launch(set.slopes, set.up_to, set.before, set.visible, length); });
  pipeline.Run();

  for (const Set& set : pipeline.sets()) {
    const std::vector<float> slopes = pipeline.Result(set.slopes);
    const std::vector<unsigned> visible = pipeline.Result(set.visible);
    float highest = -INFINITY;
    for (int at = 0; at < length; ++at) {
      const float slope = Slope(set.terrain.host.data(), length, at);
      highest = std::max(highest, slope);
      Same("slope", at, slopes[at], slope);
      Same("visible", at, visible[at], static_cast<unsigned>(slope >= highest));
    }
  }
  return pipeline.Finish();
}
