// Kernels that change what they read, once per launch and not twice: in place, by atomics, mirrored, in grids of odd
// shapes, from several streams at once on neighbouring parts of one allocation, and with copies and fills beside them.
#include "app.h"

__device__ int g_launches = 0;

__global__ void Increment(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i]++;
  if (i == 0) g_launches++;
}

__global__ void Increment3d(int* x, int width, int height, int depth) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y,
            k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i < width && j < height && k < depth) x[(k * height + j) * width + i] += 1 + k;
}

__global__ void Histogram(const unsigned char* data, int n, unsigned* bins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1u);
}

__global__ void Sum(const int* data, int n, unsigned long long* sum, int* most) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(sum, static_cast<unsigned long long>(data[i]));
  atomicMax(most, data[i]);
}

// Each block swaps its part with that at the other end.
__global__ void Mirror(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 2) return;
  const int other = x[n - 1 - i];
  x[n - 1 - i] = x[i];
  x[i] = other;
}

__global__ void Scale(int* x, int n, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * factor + 1;
}

__global__ void Nothing() {}

std::vector<int> Numbers(std::size_t count) {
  std::vector<int> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<int>(i % 1009);
  return numbers;
}

void InPlace() {
  for (const int n : {1, 31, 1000, 4097, 100'003}) {
    const std::vector<int> before = Numbers(n);
    Buffer<int> x(before);
    for (int launch = 0; launch < 3; ++launch) Increment<<<(n + 98) / 99, 99>>>(x, n);
    CU_LAUNCHED();
    const auto after = x.Read();
    for (int i = 0; i < n; ++i) Same("increment", i, after[i], before[i] + 3);
    Mirror<<<(n + 66) / 67, 67>>>(x, n);
    CU_LAUNCHED();
    const auto mirrored = x.Read();
    for (int i = 0; i < n; ++i) Same("mirror", i, mirrored[i], before[n - 1 - i] + 3);
  }
  int launches = 0;
  CU(cudaMemcpyFromSymbol(&launches, g_launches, sizeof launches));
  Same("launches", 0, launches, 15);
}

void OddGrids() {
  constexpr int kWidth = 37, kHeight = 19, kDepth = 11;
  const std::vector<int> before = Numbers(kWidth * kHeight * kDepth);
  Buffer<int> x(before);
  Increment3d<<<dim3(8, 7, 4), dim3(5, 3, 3)>>>(x, kWidth, kHeight, kDepth);
  Increment3d<<<dim3(1, 19, 2), dim3(64, 1, 8)>>>(x, kWidth, kHeight, kDepth);
  Nothing<<<dim3(3, 5, 7), 1>>>();
  CU_LAUNCHED();
  const auto after = x.Read();
  for (int i = 0; i < kWidth * kHeight * kDepth; ++i)
    Same("3d", i, after[i], before[i] + 2 * (1 + i / (kWidth * kHeight)));
}

void Atomics() {
  constexpr int kCount = 50'001;
  std::vector<unsigned char> bytes(kCount);
  std::vector<unsigned> want(256);
  for (int i = 0; i < kCount; ++i) want[bytes[i] = static_cast<unsigned char>(i * 7 % 251)] += 2;
  Buffer<unsigned char> data(bytes);
  Buffer<unsigned> bins(256);
  for (int launch = 0; launch < 2; ++launch) Histogram<<<(kCount + 127) / 128, 128>>>(data, kCount, bins);
  CU_LAUNCHED();
  const auto got = bins.Read();
  for (int i = 0; i < 256; ++i) Same("bin", i, got[i], want[i]);
  const std::vector<int> numbers = Numbers(kCount);
  Buffer<int> x(numbers), most(1);
  Buffer<unsigned long long> sum(1);
  Sum<<<(kCount + 255) / 256, 256>>>(x, kCount, sum, most);
  CU_LAUNCHED();
  unsigned long long all = 0;
  for (const int number : numbers) all += static_cast<unsigned long long>(number);
  Same("sum", 0, sum.Read()[0], all);
  Same("most", 0, most.Read()[0], 1008);
}

// Parts that share pages, each worked on in a stream of its own.
void Streams() {
  constexpr int kStreams = 4, kPart = 777, kLaunches = 10;
  Buffer<int> x(kStreams * kPart), y(kStreams * kPart);
  cudaStream_t streams[kStreams];
  for (cudaStream_t& stream : streams) CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CU(cudaDeviceSynchronize());
  for (int launch = 0; launch < kLaunches; ++launch) {
    for (int s = 0; s < kStreams; ++s) {
      int* const part = x + s * kPart;
      Scale<<<(kPart + 31) / 32, 32, 0, streams[s]>>>(part, kPart, s + 1);
      CU(cudaMemcpyAsync(y + s * kPart, part, kPart * sizeof(int), cudaMemcpyDeviceToDevice, streams[s]));
      if (launch % 3 == 2) CU(cudaMemsetAsync(part, s, 4, streams[s]));
    }
  }
  CU(cudaDeviceSynchronize());
  const auto got = x.Read(), copied = y.Read();
  for (int s = 0; s < kStreams; ++s) {
    for (int i = 0; i < kPart; ++i) {
      int want = 0;
      for (int launch = 0; launch < kLaunches; ++launch) {
        want = want * (s + 1) + 1;
        if (launch % 3 == 2 && i == 0) want = s * 0x01010101;
      }
      Same("scaled", s * kPart + i, got[s * kPart + i], want);
      Same("copied", s * kPart + i, copied[s * kPart + i], want);
    }
  }
  for (const cudaStream_t stream : streams) CU(cudaStreamDestroy(stream));
}

int main() {
  InPlace();
  OddGrids();
  Atomics();
  Streams();
  return Verdict();
}
