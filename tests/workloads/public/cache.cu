// Loads that caches serve, in four shapes:
// same      all blocks read the same data again and again (gpu-cache of RRZE-HPC/gpu-benches)
// turns     blocks read --sets data sets in turn, each 512 KiB and more than L1 holds (gpu-l2-cache, likewise)
// stride    the warps of one block read elements that are --stride apart (gpu-strides, likewise)
// chained   each thread reads --steps elements again and again, each load when the one before has ended (cachebench of
//           ekondis/gpumembench)
#include "choice.h"

constexpr int kSameThreads = 512, kTurnThreads = 1024, kTurnSteps = 64, kChainedThreads = 256, kChainedUnroll = 64;
constexpr int kStrideThreads = 1024, kStrideLoads = 8, kStrideLanes = 64;

/// Sums, for each of `turns` turns, the products of two halves of the data, of kSteps elements a thread each.
template <int kSteps>
__global__ void Same(const float* data, float* sums, int turns, int zero) {
  float sum = 0;
  data += threadIdx.x;
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    data += zero;
    const float* const second = data + kSteps * kSameThreads;
#pragma unroll 16
    for (int i = 0; i < kSteps; ++i) sum += data[i * kSameThreads] * second[i * kSameThreads];
  }
  sums[blockIdx.x * kSameThreads + threadIdx.x] = sum;
}

/// Block b reads set b % sets, whose parts lie between those of the others.
__global__ void Turns(const double* data, double* sums, int sets) {
  double sum = 0;
#pragma unroll
  for (int i = 0; i < kTurnSteps / 2; ++i) {
    const int at = (kTurnThreads * sets * i + blockIdx.x % sets * kTurnThreads) * 2 + threadIdx.x;
    sum += data[at] * data[at + kTurnThreads];
  }
  sums[blockIdx.x * kTurnThreads + threadIdx.x] = sum;
}

__global__ void Stride(const float* data, float* sums, int turns, int stride, int zero) {
  data += threadIdx.x % kStrideLanes * stride;
  float sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    data += zero;
    sum += data[0] * data[4];
    sum += data[8] * data[12];
    sum += data[20] * data[16];
    sum += data[24] * data[28];
  }
  sums[threadIdx.x] = sum;
}

/// A load that the compiler takes out of no loop.
__device__ unsigned Load(const unsigned* at) {
  unsigned value;
  asm volatile("ld.ca.u32 %0, [%1];" : "=r"(value) : "l"(at));
  return value;
}

/// All data are 0, so each address is what it would be without what was loaded.
template <int kSteps>
__global__ void Chained(const unsigned* data, int* sums, int turns, int wrap) {
  int first = kSteps * blockIdx.x * kChainedThreads + threadIdx.x;
  if (wrap > 0) first %= wrap;
  std::uintptr_t at = reinterpret_cast<std::uintptr_t>(data + first);
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int i = 0; i < kChainedUnroll; ++i)
      at ^= Load(reinterpret_cast<const unsigned*>(at) + i % kSteps * kChainedThreads);
  }
  const auto moved = at - reinterpret_cast<std::uintptr_t>(data + first);
  sums[blockIdx.x * kChainedThreads + threadIdx.x] = static_cast<int>(moved) + 1;
}

constexpr float kValue = 0.5f;

template <class T>
void CheckAll(const std::vector<T>& sums, T want) {
  for (std::size_t i = 0; i < sums.size(); ++i) Near("sum", static_cast<long>(i), sums[i], want, 1e-4);
}

template <int kSteps>
void RunSame(const Sizes& sizes) {
  const Buffer<float> data(std::vector<float>(2 * kSteps * kSameThreads, kValue)), sums(sizes["blocks"] * kSameThreads);
  Same<kSteps><<<sizes["blocks"], kSameThreads>>>(data, sums, sizes["turns"], 0);
  CU_LAUNCHED();
  CheckAll(sums.Read(), kValue * kValue * kSteps * sizes["turns"]);
}

void RunTurns(const Sizes& sizes) {
  const Buffer<double> data(std::vector<double>(std::size_t{1} * kTurnSteps * kTurnThreads * sizes["sets"], kValue));
  const Buffer<double> sums(std::size_t{1} * sizes["blocks"] * kTurnThreads);
  Turns<<<sizes["blocks"], kTurnThreads>>>(data, sums, sizes["sets"]);
  CU_LAUNCHED();
  CheckAll(sums.Read(), static_cast<double>(kValue) * kValue * kTurnSteps / 2);
}

void RunStride(const Sizes& sizes) {
  const int stride = sizes["stride"];
  const Buffer<float> data(std::vector<float>(std::size_t{1} * kStrideLanes * stride + 32, kValue)),
      sums(kStrideThreads);
  Stride<<<1, kStrideThreads>>>(data, sums, sizes["turns"], stride, 0);
  CU_LAUNCHED();
  CheckAll(sums.Read(), kValue * kValue * kStrideLoads / 2 * sizes["turns"]);
}

template <int kSteps>
void RunChained(const Sizes& sizes) {
  const Buffer<unsigned> data(std::size_t{1} * sizes["blocks"] * kChainedThreads * kSteps);
  const Buffer<int> sums(sizes["blocks"] * kChainedThreads);
  Chained<kSteps><<<sizes["blocks"], kChainedThreads>>>(data, sums, sizes["turns"], kSteps == 1 ? sizes["wrap"] : 0);
  CU_LAUNCHED();
  CheckAll(sums.Read(), 1);
}

int main(int argc, char** argv) {
  using Function = void (*)(const Sizes&);
  const Function run = Chosen<Function>(argc, argv,
                                        {{"same-12", RunSame<12>},    // 48 KiB
                                         {"same-131", RunSame<131>},  // 524 KiB
                                         {"turns", RunTurns},
                                         {"stride", RunStride},
                                         {"chained-1", RunChained<1>},
                                         {"chained-8", RunChained<8>},
                                         {"chained-64", RunChained<64>}});
  run(Sizes(argc - 1, argv + 1,
            {{"blocks", 80, 80}, {"turns", 20, 200}, {"sets", 6, 6}, {"stride", 1, 1}, {"wrap", 4096, 4096}}));
  return Verdict();
}
