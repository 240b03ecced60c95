// A million sums through the driver API; the device code was compiled to PTX by clang.
#include "host.h"

EMBED(kPtx, DEVICE_PTX);

int main() {
  const int n = 1'000'003;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = i * 0.5f, b[i] = i * 0.25f + 1;
  driver::Program program(kPtx);
  driver::Buffer<float> da(a), db(b), dc(n);
  program.Launch("VectorAdd", {(n + 255u) / 256}, {256}, da.get(), db.get(), dc.get(), n);
  const auto c = dc.Read();
  long bad = 0;
  for (int i = 0; i < n; ++i) bad += c[i] != a[i] + b[i];
  return driver::Verdict("vectoradd", bad, n);
}
