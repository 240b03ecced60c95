// Divergent loops and a warp vote.
#include "host.h"

EMBED(kPtx, DEVICE_PTX);

int main() {
  const int n = 20'011, blocks = (n + 127) / 128;
  driver::Program program(kPtx);
  driver::Buffer<unsigned> steps(n), lanes(blocks * 4);
  program.Launch("Collatz", {unsigned(blocks)}, {128}, 1000u, steps.get(), lanes.get(), n);
  const auto got = steps.Read(), votes = lanes.Read();
  long bad = 0;
  for (int i = 0; i < n; ++i) {
    unsigned count = 0;
    for (std::uint64_t v = 1000 + i; v != 1; v = v & 1 ? 3 * v + 1 : v / 2) ++count;
    bad += got[i] != count;
    bad += (votes[i / 32] >> (i % 32) & 1) != (count > 100);
  }
  return driver::Verdict("collatz", bad, 2 * n);
}
