// Two kernels in two streams, side by side where the device lets them. usage: driver_two_streams [pair|alike]
// pair: one waits for memory, the other computes; alike: both compute.
#include <cstring>
#include <numeric>

#include "host.h"

EMBED(kPtx, DEVICE_PTX);

namespace {

constexpr unsigned kEntries = 1 << 18, kChaseBlocks = 336, kMixBlocks = 448, kChaseThreads = 256, kMixThreads = 128;
constexpr int kHops = 4, kRounds = 300;

unsigned Random(unsigned& state) { return state = state * 1664525u + 1013904223u; }

/// One cycle through all entries in random order: Sattolo's shuffle of the identity.
std::vector<unsigned> RandomCycle() {
  std::vector<unsigned> next(kEntries);
  std::iota(next.begin(), next.end(), 0u);
  unsigned state = 1;
  for (unsigned i = kEntries - 1; i > 0; --i) std::swap(next[i], next[(Random(state) >> 8) % i]);
  return next;
}

unsigned Step(unsigned value, int a, int b, int c) {
  value ^= value << a;
  value ^= value >> b;
  return value ^ value << c;
}

long WrongOf(const std::vector<unsigned>& values, int a, int b, int c) {
  long wrong = 0;
  for (unsigned i = 0; i < values.size(); ++i) {
    unsigned want = i;
    for (int round = 0; round < kRounds; ++round) want = Step(want, a, b, c);
    wrong += values[i] != want;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const bool alike = argc > 1 && std::strcmp(argv[1], "alike") == 0;
  driver::Program program(kPtx);
  const std::vector<unsigned> next = RandomCycle();
  const driver::Buffer<unsigned> table(next), last(kChaseBlocks * kChaseThreads), mixed(kMixBlocks * kMixThreads),
      turned(kMixBlocks * kMixThreads);
  const driver::Stream first, second;
  if (alike) program.Start(first, "Turn", {kMixBlocks}, {kMixThreads}, turned.get(), kRounds);
  else program.Start(first, "Chase", {kChaseBlocks}, {kChaseThreads}, table.get(), last.get(), kEntries, kHops);
  program.Start(second, "Mix", {kMixBlocks}, {kMixThreads}, mixed.get(), kRounds);
  driver::Call("cuCtxSynchronize");
  long wrong = WrongOf(mixed.Read(), 13, 17, 5);
  if (alike) {
    wrong += WrongOf(turned.Read(), 7, 9, 11);
  } else {
    const std::vector<unsigned> ends = last.Read();
    for (unsigned thread = 0; thread < ends.size(); ++thread) {
      unsigned at = thread * 2654435761u % kEntries;
      for (int hop = 0; hop < kHops; ++hop) at = next[at];
      wrong += ends[thread] != at;
    }
  }
  return driver::Verdict(
      "two_streams", wrong,
      static_cast<long>(kMixBlocks) * kMixThreads + (alike ? kMixBlocks * kMixThreads : kChaseBlocks * kChaseThreads));
}
