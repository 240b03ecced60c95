// NN (the neural network of the ISPASS 2009 benchmarks): digits recognised in images of 29x29 by four layers, a kernel
// each: six maps of 13x13, fifty of 5x5, a hundred neurons that see all of these, ten that see all of those. A CTA has
// a map, or a few neurons, of each image of a data set, one image after the other: grids are small, however many images
// there are. The weights are common to all.
#include "pipeline/program.h"

constexpr int kImage = 29, kWindow = 5, kPixels = kImage * kImage;
constexpr int kMaps1 = 6, kSide1 = 13, kLayer1 = kMaps1 * kSide1 * kSide1;
constexpr int kMaps2 = 50, kSide2 = 5, kLayer2 = kMaps2 * kSide2 * kSide2;
constexpr int kLayer3 = 100, kLayer4 = 10, kWarps3 = 4;
constexpr int kTaps = kWindow * kWindow;

__device__ inline float Activation(float sum) { return 1.7159f * tanhf(0.66666667f * sum); }

/// A window of `in`, whose rows have `side` values, met with kTaps weights; windows are two apart.
__device__ inline float Window(const float* in, int side, const float* weights, float sum) {
  const float* const corner = in + 2 * threadIdx.y * side + 2 * threadIdx.x;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) sum = fmaf(weights[tap], corner[tap / kWindow * side + tap % kWindow], sum);
  return sum;
}

/// A map a CTA. Its weights: a bias, then kTaps.
__global__ void __maxnreg__(kFermiRegisters) Layer1(const float* pixels, const float* weights, float* out, int images) {
  const float* const mine = weights + blockIdx.x * (1 + kTaps);
  const int at = (blockIdx.x * kSide1 + threadIdx.y) * kSide1 + threadIdx.x;
#pragma unroll 1
  for (int image = 0; image < images; ++image) {
    out[image * kLayer1 + at] = Activation(Window(pixels + image * kPixels, kImage, mine + 1, mine[0]));
  }
}

/// A map a CTA, of windows of all maps below. Its weights: a bias, then kTaps for each of those.
__global__ void __maxnreg__(kFermiRegisters) Layer2(const float* in, const float* weights, float* out, int images) {
  const float* const mine = weights + blockIdx.x * (1 + kMaps1 * kTaps);
  const int at = (blockIdx.x * kSide2 + threadIdx.y) * kSide2 + threadIdx.x;
#pragma unroll 1
  for (int image = 0; image < images; ++image) {
    float sum = mine[0];
#pragma unroll 1
    for (int map = 0; map < kMaps1; ++map) {
      sum = Window(in + image * kLayer1 + map * kSide1 * kSide1, kSide1, mine + 1 + map * kTaps, sum);
    }
    out[image * kLayer2 + at] = Activation(sum);
  }
}

/// A neuron a warp. Its weights: a bias, then one for each of `inputs`.
__device__ inline void Neuron(int neuron, const float* in, int inputs, const float* weights, float* out, int neurons,
                              int images) {
  const float* const mine = weights + neuron * (1 + inputs);
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int image = 0; image < images; ++image) {
    float sum = 0;
    for (int i = lane; i < inputs; i += 32) sum = fmaf(mine[1 + i], in[image * inputs + i], sum);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) out[image * neurons + neuron] = Activation(sum + mine[0]);
  }
}

__global__ void __maxnreg__(kFermiRegisters) Layer3(const float* in, const float* weights, float* out, int images) {
  Neuron(blockIdx.x * kWarps3 + threadIdx.x / 32, in, kLayer2, weights, out, kLayer3, images);
}

__global__ void __launch_bounds__(32 * kLayer4) Layer4(const float* in, const float* weights, float* out, int images) {
  Neuron(threadIdx.x / 32, in, kLayer3, weights, out, kLayer4, images);
}

struct Set {
  Set(const Options& options, int index)
      : pixels(UniformValues(static_cast<std::size_t>(options["images"]) * kPixels, 0, 1, 700 + index)),
        layer1(options["images"] * kLayer1),
        layer2(options["images"] * kLayer2),
        layer3(options["images"] * kLayer3),
        layer4(options["images"] * kLayer4) {}
  const Input<float> pixels;
  const DeviceArray<float> layer1, layer2, layer3, layer4;
};

/// Weights that keep sums of `inputs` values about as large as these are.
Input<float> Weights(int neurons, int inputs, std::uint64_t seed) {
  const float most = std::sqrt(3.0f / static_cast<float>(inputs));
  return Input<float>(UniformValues(static_cast<std::size_t>(neurons) * (1 + inputs), -most, most, seed));
}

using Values = std::vector<double>;

double ActivationOnHost(double sum) { return 1.7159 * std::tanh(sum * 2 / 3); }

/// The maps of a layer of windows, from `below` maps of in_side x in_side.
Values Convolve(const Values& in, int below, int in_side, const std::vector<float>& weights, int maps, int side) {
  Values out;
  for (int map = 0; map < maps; ++map) {
    const float* const mine = &weights[map * (1 + below * kTaps)];
    for (int place = 0; place < side * side; ++place) {
      double sum = mine[0];
      for (int i = 0; i < below * kTaps; ++i) {
        const int y = 2 * (place / side) + i % kTaps / kWindow, x = 2 * (place % side) + i % kWindow;
        sum += static_cast<double>(mine[1 + i]) * in[(i / kTaps * in_side + y) * in_side + x];
      }
      out.push_back(ActivationOnHost(sum));
    }
  }
  return out;
}

Values Connect(const Values& in, const std::vector<float>& weights, int neurons) {
  Values out;
  for (int neuron = 0; neuron < neurons; ++neuron) {
    const float* const mine = &weights[neuron * (1 + in.size())];
    double sum = mine[0];
    for (std::size_t i = 0; i < in.size(); ++i) sum += mine[1 + i] * in[i];
    out.push_back(ActivationOnHost(sum));
  }
  return out;
}

/// Values are below 1.72, sums have up to 1250 terms: 1e-4 is some ten times what floats lose by the last layer.
void CheckLayer(const char* what, const std::vector<float>& got, int image, const Values& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::size_t at = image * want.size() + i;
    Near(what, static_cast<long>(at), got[at], want[i], 0, 1e-4);
  }
}

int main(int argc, char** argv) {
  const Options options("nn", argc, argv, {{"images", 1, 8, 1, 1024}});
  const int images = options["images"];
  const Input<float> weights1 = Weights(kMaps1, kTaps, 1), weights2 = Weights(kMaps2, kMaps1 * kTaps, 2);
  const Input<float> weights3 = Weights(kLayer3, kLayer2, 3), weights4 = Weights(kLayer4, kLayer3, 4);
  Pipeline<Set> pipeline(options);
  pipeline.Stage("layer1", Layer1, kMaps1, dim3(kSide1, kSide1),
                 [&, images](const Set& set, auto launch) { launch(set.pixels, weights1, set.layer1, images); });
  pipeline.Stage("layer2", Layer2, kMaps2, dim3(kSide2, kSide2),
                 [&, images](const Set& set, auto launch) { launch(set.layer1, weights2, set.layer2, images); });
  pipeline.Stage("layer3", Layer3, kLayer3 / kWarps3, 32 * kWarps3,
                 [&, images](const Set& set, auto launch) { launch(set.layer2, weights3, set.layer3, images); });
  pipeline.Stage("layer4", Layer4, 1, 32 * kLayer4,
                 [&, images](const Set& set, auto launch) { launch(set.layer3, weights4, set.layer4, images); });
  pipeline.Run();

  for (const Set& set : pipeline.sets()) {
    const std::vector<float> layer1 = pipeline.Result(set.layer1), layer2 = pipeline.Result(set.layer2);
    const std::vector<float> layer3 = pipeline.Result(set.layer3), layer4 = pipeline.Result(set.layer4);
    for (int image = 0; image < images; ++image) {
      const auto first = set.pixels.host.begin() + image * kPixels;
      const Values want1 = Convolve(Values(first, first + kPixels), 1, kImage, weights1.host, kMaps1, kSide1);
      const Values want2 = Convolve(want1, kMaps1, kSide1, weights2.host, kMaps2, kSide2);
      const Values want3 = Connect(want2, weights3.host, kLayer3);
      CheckLayer("layer1", layer1, image, want1);
      CheckLayer("layer2", layer2, image, want2);
      CheckLayer("layer3", layer3, image, want3);
      CheckLayer("layer4", layer4, image, Connect(want3, weights4.host, kLayer4));
    }
  }
  return pipeline.Finish();
}
