// Histogram with atomics in shared and global memory.
#include "host.h"

EMBED(kPtx, DEVICE_PTX);

int main() {
  const int n = 500'001;
  std::vector<unsigned char> in(n);
  std::vector<unsigned> want(256);
  for (int i = 0; i < n; ++i) in[i] = (i * 2654435761u >> 13) % (i % 3 ? 256 : 20), ++want[in[i]];
  driver::Program program(kPtx);
  driver::Buffer<unsigned char> din(in);
  driver::Buffer<unsigned> out(256);
  program.Launch("Histogram", {37}, {192}, din.get(), out.get(), n);
  const auto got = out.Read();
  long bad = 0;
  for (int i = 0; i < 256; ++i) bad += got[i] != want[i];
  return driver::Verdict("histogram", bad, 256);
}
