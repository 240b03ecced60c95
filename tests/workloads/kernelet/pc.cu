// PC: pointer chase. Every thread follows indices through one random cycle over the whole array; no two lanes share a
// sector.
#include <numeric>

#include "workload.h"

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    PointerChase(const unsigned* next, unsigned* last, unsigned entries, int hops) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = thread * 2654435761u % entries;
#pragma unroll 1
  for (int hop = 0; hop < hops; ++hop) at = next[at];
  last[thread] = at;
}

/// One cycle through all entries in random order: Sattolo's shuffle of the identity.
std::vector<unsigned> RandomCycle(unsigned entries) {
  std::vector<unsigned> next(entries);
  std::iota(next.begin(), next.end(), 0u);
  Random random(1);
  for (unsigned i = entries - 1; i > 0; --i) std::swap(next[i], next[random.Next() % i]);
  return next;
}

int main(int argc, char** argv) {
  // The paper: indices for 40 million accesses, 256 x 16384 threads, so about ten dependent loads a thread.
  const Sizes sizes(argc, argv, {{"ctas", 96, 16384}, {"hops", 10, 10}, {"entries", 4 << 20, 40'000'000}});
  const unsigned entries = sizes["entries"];
  const std::vector<unsigned> next = RandomCycle(entries);
  const Buffer<unsigned> device_next(next), device_last(static_cast<std::size_t>(sizes["ctas"]) * kThreads);
  PointerChase<<<sizes["ctas"], kThreads>>>(device_next, device_last, entries, sizes["hops"]);
  CU_LAUNCHED();
  const std::vector<unsigned> last = device_last.Read();
  for (std::size_t thread = 0; thread < last.size(); ++thread) {
    unsigned at = static_cast<unsigned>(thread) * 2654435761u % entries;
    for (int hop = 0; hop < sizes["hops"]; ++hop) at = next[at];
    Same("last", static_cast<long>(thread), last[thread], at);
  }
  PrintDigest("last", last);
  return Verdict();
}
