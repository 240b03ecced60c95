// Double-precision a x + y.
#include "host.h"

EMBED(kPtx, DEVICE_PTX);

int main() {
  const int n = 300'007;
  std::vector<double> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = 1.0 / (i + 1), y[i] = i * 0.1;
  driver::Program program(kPtx);
  driver::Buffer<double> dx(x), dy(y);
  program.Launch("Daxpy", {29}, {160}, 1.7, dx.get(), dy.get(), n);
  const auto got = dy.Read();
  long bad = 0;
  for (int i = 0; i < n; ++i) bad += got[i] != std::fma(1.7, x[i], y[i]);
  return driver::Verdict("daxpy", bad, n);
}
