// Reduction with shuffles, shared memory and an atomic.
#include "host.h"

EMBED(kPtx, DEVICE_PTX);

int main() {
  const int n = 777'777;
  std::vector<int> in(n);
  unsigned want = 0;
  for (int i = 0; i < n; ++i) in[i] = (i * 2654435761u >> 20) - 2000, want += in[i];
  driver::Program program(kPtx);
  driver::Buffer<int> din(in);
  driver::Buffer<unsigned> out(1);
  program.Launch("Reduce", {61}, {224}, din.get(), out.get(), n);
  return driver::Verdict("reduce", out.Read()[0] != want, 1);
}
