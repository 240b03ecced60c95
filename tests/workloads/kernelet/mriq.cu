// MRIQ: the matrix Q of magnetic resonance image reconstruction. Each voxel sums, over all samples in k-space,
// magnitude times sine and cosine of the phase. Samples are in constant memory, a tile of them per launch; one voxel a
// thread.
#include <algorithm>

#include "workload.h"

constexpr int kThreads = 256, kTileSamples = 1024;

struct alignas(16) Sample {
  float x, y, z, magnitude;
};
__constant__ Sample samples_tile[kTileSamples];

// The bound on registers is what the published occupancies (83.3 % on Fermi) leave: five CTAs of 256 threads in 32768
// registers.
__global__ void __maxnreg__(24) ComputeQ(int voxels, int samples, const float* x, const float* y, const float* z,
                                         float* q_real, float* q_imaginary) {
  const int voxel = blockIdx.x * kThreads + threadIdx.x;
  if (voxel >= voxels) return;
  const float px = x[voxel], py = y[voxel], pz = z[voxel];
  float real = q_real[voxel], imaginary = q_imaginary[voxel];
#pragma unroll 1
  for (int i = 0; i < samples; ++i) {
    const Sample sample = samples_tile[i];
    const float phase = 6.2831853071795864769f * (sample.x * px + sample.y * py + sample.z * pz);
    real += sample.magnitude * __cosf(phase);
    imaginary += sample.magnitude * __sinf(phase);
  }
  q_real[voxel] = real;
  q_imaginary[voxel] = imaginary;
}

std::vector<float> Coordinates(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Uniform(-1, 1);
  return values;
}

int main(int argc, char** argv) {
  // The paper: 2097152 voxels; it does not say how many samples, the benchmark's larger set has 2048.
  const Sizes sizes(argc, argv, {{"voxels", 131072, 2097152}, {"samples", 64, 2048}});
  const int voxels = sizes["voxels"], sample_count = sizes["samples"];
  const auto x = Coordinates(voxels, 1), y = Coordinates(voxels, 2), z = Coordinates(voxels, 3);
  std::vector<Sample> samples(sample_count);
  Random random(4);
  for (Sample& sample : samples)
    sample = {random.Uniform(-2, 2), random.Uniform(-2, 2), random.Uniform(-2, 2), random.Uniform(0, 1)};
  const Buffer<float> device_x(x), device_y(y), device_z(z), device_real(voxels), device_imaginary(voxels);
  for (int begin = 0; begin < sample_count; begin += kTileSamples) {
    const int count = std::min(kTileSamples, sample_count - begin);
    CU(cudaMemcpyToSymbol(samples_tile, samples.data() + begin, count * sizeof(Sample)));
    ComputeQ<<<(voxels + kThreads - 1) / kThreads, kThreads>>>(voxels, count, device_x, device_y, device_z, device_real,
                                                               device_imaginary);
    CU_LAUNCHED();
  }
  const std::vector<float> real = device_real.Read(), imaginary = device_imaginary.Read();
  for (int voxel = 0; voxel < voxels; voxel += static_cast<int>(CheckEvery(voxels, 20'000))) {
    double want_real = 0, want_imaginary = 0;
    for (const Sample& sample : samples) {
      const double phase = 2 * 3.14159265358979323846 *
                           (static_cast<double>(sample.x) * x[voxel] + sample.y * y[voxel] + sample.z * z[voxel]);
      want_real += sample.magnitude * std::cos(phase);
      want_imaginary += sample.magnitude * std::sin(phase);
    }
    // The phase is rounded to single precision: an error of some 1e-6 for each sample.
    Near("real", voxel, real[voxel], want_real, 1e-3, 1e-5 * sample_count);
    Near("imaginary", voxel, imaginary[voxel], want_imaginary, 1e-3, 1e-5 * sample_count);
  }
  PrintDigest("real", real);
  PrintDigest("imaginary", imaginary);
  return Verdict();
}
