// Streams: each thread reads and writes one element of long arrays of doubles. The kernels are those that BabelStream
// and gpu-stream (RRZE-HPC/gpu-benches) measure. --shared bytes of shared memory, which nobody uses, limit how many
// blocks an SM holds.
#include "choice.h"

struct Arrays {
  double *a, *b, *c, *d;
};

constexpr double kFactor = 0.3, kNever = 123;
constexpr int kDotThreads = 1024;
constexpr double kA = 0.1, kB = 0.2, kC = 0.4, kD = 0.7;  // what all elements of the arrays are

__global__ void Copy(Arrays arrays, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  arrays.c[i] = arrays.a[i];
}

__global__ void Mul(Arrays arrays, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  arrays.b[i] = kFactor * arrays.c[i];
}

__global__ void Add(Arrays arrays, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  arrays.c[i] = arrays.a[i] + arrays.b[i];
}

__global__ void Triad(Arrays arrays, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  arrays.a[i] = arrays.b[i] + kFactor * arrays.c[i];
}

/// Each block leaves its part of the sum in c.
__global__ void Dot(Arrays arrays, int elements) {
  __shared__ double parts[kDotThreads];
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x)
    sum += arrays.a[i] * arrays.b[i];
  parts[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) arrays.c[blockIdx.x] = parts[0];
}

__global__ void Init(Arrays arrays, int elements) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) arrays.a[i] = kFactor;
}

/// The element that is kNever, and no other, is stored.
__global__ void Read(Arrays arrays, int elements) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const double value = arrays.b[i];
  if (value == kNever) arrays.a[i] = value;
}

__global__ void Scale(Arrays arrays, int elements) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) arrays.a[i] = arrays.b[i] * kFactor;
}

__global__ void Triad4(Arrays arrays, int elements) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) arrays.a[i] = arrays.b[i] * arrays.d[i] + arrays.c[i];
}

/// A kernel, the array that it leaves its result in, and what each element of that is afterwards.
struct Stream {
  void (*kernel)(Arrays, int);
  double* Arrays::*result;
  double want;
};

void Check(const Stream& stream, const std::vector<double>& result, int elements, int blocks) {
  if (stream.kernel == Dot) {
    double sum = 0;
    for (int i = 0; i < blocks; ++i) sum += result[i];
    Near("dot", 0, sum, kA * kB * elements, 1e-9);
    return;
  }
  for (std::size_t i = 0; i < result.size(); i += CheckEvery(result.size(), 100'000))
    Near("result", static_cast<long>(i), result[i], stream.kernel == Read && i == 0 ? kNever : stream.want, 1e-12);
}

int main(int argc, char** argv) {
  const Stream stream = Chosen<Stream>(argc, argv,
                                       {{"copy", {Copy, &Arrays::c, kA}},
                                        {"mul", {Mul, &Arrays::b, kFactor * kC}},
                                        {"add", {Add, &Arrays::c, kA + kB}},
                                        {"triad", {Triad, &Arrays::a, kB + kFactor * kC}},
                                        {"dot", {Dot, &Arrays::c, 0}},
                                        {"init", {Init, &Arrays::a, kFactor}},
                                        {"read", {Read, &Arrays::a, kA}},
                                        {"scale", {Scale, &Arrays::a, kB * kFactor}},
                                        {"triad4", {Triad4, &Arrays::a, kB * kD + kC}}});
  const Sizes sizes(argc - 1, argv + 1,
                    {{"elements", 1 << 20, 1 << 25}, {"threads", 1024, 1024}, {"blocks", 320, 320}, {"shared", 0, 0}});
  const int threads = sizes["threads"], elements = sizes["elements"] / threads * threads, shared = sizes["shared"];
  if (stream.kernel == Dot && (threads > kDotThreads || (threads & (threads - 1)) != 0))
    Refuse("dot: --threads must be a power of two, at most " + std::to_string(kDotThreads));
  const int blocks = stream.kernel == Dot ? sizes["blocks"] : elements / threads;
  if (elements == 0 || blocks > elements) Refuse("--elements must be at least --threads and --blocks");
  const auto all = [&](double value) { return std::vector<double>(elements, value); };
  std::vector<double> values = all(kB);
  if (stream.kernel == Read) values[0] = kNever;
  const Buffer<double> a(all(kA)), b(values), c(all(kC)), d(all(kD));
  if (stream.kernel != Dot)
    CU(cudaFuncSetAttribute(stream.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  stream.kernel<<<blocks, threads, stream.kernel == Dot ? 0 : shared>>>({a, b, c, d}, elements);
  CU_LAUNCHED();
  std::vector<double> result(elements);
  CU(cudaMemcpy(result.data(), Arrays{a, b, c, d}.*stream.result, elements * sizeof(double), cudaMemcpyDeviceToHost));
  Check(stream, result, elements, blocks);
  return Verdict();
}
