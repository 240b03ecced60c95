// A pointer chase by one thread through --lines lines of 128 bytes in random order, as gpu-latency
// (RRZE-HPC/gpu-benches). First another kernel reads all lines, so that they are in L2 if they fit.
#include <numeric>

#include "workload.h"

constexpr int kLineWords = 16, kUnroll = 32;

__global__ void Chase(const std::int64_t* const* start, std::int64_t* last, int hops) {
  const auto* at = reinterpret_cast<const std::int64_t*>(start);
#pragma unroll 1
  for (int hop = 0; hop < hops; hop += kUnroll) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) at = reinterpret_cast<const std::int64_t*>(*at);
  }
  *last = reinterpret_cast<std::int64_t>(at);
}

__global__ void Touch(const std::int64_t* lines, std::int64_t* sums, int count) {
  std::int64_t sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum += lines[i * kLineWords];
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// Sattolo's shuffle of the identity: one cycle through all lines.
std::vector<int> RandomCycle(int lines) {
  std::vector<int> next(lines);
  std::iota(next.begin(), next.end(), 0);
  Random random(1);
  for (int i = lines - 1; i > 0; --i) std::swap(next[i], next[random.Next() % i]);
  return next;
}

int main(int argc, char** argv) {
  const Sizes sizes(argc, argv, {{"lines", 512, 1 << 20}, {"hops", 20000, 100000}, {"cold", 0, 0}});
  const int lines = sizes["lines"], hops = (sizes["hops"] + kUnroll - 1) / kUnroll * kUnroll;
  if (lines < 2 || lines > INT32_MAX / kLineWords) Refuse("--lines must be from 2 to 2^27");
  const std::vector<int> next = RandomCycle(lines);
  const Buffer<std::int64_t> device(static_cast<std::size_t>(lines) * kLineWords), last(1), sums(64 * 256);
  std::vector<std::int64_t> words(device.size());
  const auto address = [&](int line) {
    return reinterpret_cast<std::int64_t>(device + std::size_t{1} * line * kLineWords);
  };
  for (int line = 0; line < lines; ++line) words[static_cast<std::size_t>(line) * kLineWords] = address(next[line]);
  CU(cudaMemcpy(device, words.data(), words.size() * sizeof(words[0]), cudaMemcpyHostToDevice));
  if (sizes["cold"] == 0) Touch<<<64, 256>>>(device, sums, lines);
  CU_LAUNCHED();
  Chase<<<1, 1>>>(reinterpret_cast<const std::int64_t* const*>(static_cast<std::int64_t*>(device)), last, hops);
  CU_LAUNCHED();
  int at = 0;
  for (int hop = 0; hop < hops; ++hop) at = next[at];
  Same("last", 0, last.Read()[0], address(at));
  return Verdict();
}
