// CONV, image convolution (CUDA samples): a square filter goes over an image, outside of which there is nothing. A task
// is an image with the filter that it is to have: neighbouring threads have neighbouring pixels, whose neighbourhoods
// are in the cache. There is little to do for a pixel, so that launches and copies are most of the time.
#include "pagoda/run.h"

struct ConvArguments {
  const float *filter, *image;
  float* out;
  int side, radius;
};

__device__ inline void ConvWork(const ConvArguments& task, int thread, int threads) {
  const int side = task.side, radius = task.radius;
  for (int pixel = thread; pixel < side * side; pixel += threads) {
    const int x = pixel % side, y = pixel / side;
    float sum = 0;
    for (int dy = -radius; dy <= radius; ++dy) {
      for (int dx = -radius; dx <= radius; ++dx) {
        if (x + dx < 0 || x + dx >= side || y + dy < 0 || y + dy >= side) continue;
        sum =
            fmaf(task.filter[(dy + radius) * (2 * radius + 1) + dx + radius], task.image[pixel + dy * side + dx], sum);
      }
    }
    task.out[pixel] = sum;
  }
}
__global__ void Convolution(ConvArguments task) {
  ConvWork(task, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
__global__ void ConvolutionFused(const ConvArguments* tasks) { ConvWork(tasks[blockIdx.x], threadIdx.x, blockDim.x); }

/// Adds, for one place of the filter after the other, the shifted image.
PAGODA_HOST void ConvOnHost(const float* filter, const float* image, int side, int radius, float* out) {
  for (int pixel = 0; pixel < side * side; ++pixel) out[pixel] = 0;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      const float weight = *filter++;
      for (int y = std::max(0, -dy); y < std::min(side, side - dy); ++y) {
        for (int x = std::max(0, -dx); x < std::min(side, side - dx); ++x) {
          out[y * side + x] = std::fmaf(weight, image[(y + dy) * side + x + dx], out[y * side + x]);
        }
      }
    }
  }
}

class Conv final : public KindOf<ConvArguments> {
 public:
  explicit Conv(const Options& options)
      : KindOf(Convolution, ConvolutionFused),
        options_(options),
        radius_(options["radius"]),
        taps_((2 * radius_ + 1) * (2 * radius_ + 1)) {}

  void Describe(Task& task) const override {
    task.size = SizeOf(options_, task.index, options_["size"] / 4, options_["size"], 1);
    task.share = Square(1.0 * task.size / options_["size"]);
    task.in_bytes = sizeof(float) * (taps_ + task.size * task.size);
    task.out_bytes = sizeof(float) * task.size * task.size;
  }
  /// The filter, whose weights add up to about 1, then pixels of 0 to 255.
  void Fill(const Task& task, char* in) const override {
    float* const values = reinterpret_cast<float*>(in);
    FillUniform(values, taps_, -0.5f / taps_, 2.5f / taps_, RandomOf(options_, task.index, 2));
    Random random = RandomOf(options_, task.index);
    for (int i = 0; i < task.size * task.size; ++i) values[taps_ + i] = static_cast<float>(random.Next() % 256);
  }
  void Compute(const Task& task, const char* in, char* out) const override {
    const float* const values = reinterpret_cast<const float*>(in);
    ConvOnHost(values, values + taps_, task.size, radius_, reinterpret_cast<float*>(out));
  }
  ConvArguments ArgumentsOf(const Task& task) const override {
    const float* const in = reinterpret_cast<const float*>(task.in);
    return {in, in + taps_, reinterpret_cast<float*>(task.out), task.size, radius_};
  }

 private:
  const Options& options_;
  int radius_, taps_;
};

int main(int argc, char** argv) {
  const Options options("conv", "convolution of images, an image a task", argc, argv, {.blocks = true},
                        {{"size", 64, 128, 1, 4096}, {"radius", 1, 1, 0, 16}});
  const Conv kind(options);
  return Run(options, kind).Main();
}
