// Device printf: every conversion, flags, widths, %s, many arguments, the return value; compared with the host's
// printf. Only what the CUDA C++ Programming Guide lists ("Formatted Output"): of sizes h, l and ll, of precisions
// digits.
#include <algorithm>
#include <string>

#include "captured_output.h"

#define LINES(P)                                                                                               \
  P("d=%d i=%i neg=%d u=%u\n", 42, 7, -13, 4000000000u);                                                       \
  P("x=%x X=%X o=%o #x=%#x #o=%#o\n", 0xbeef, 0xbeef, 511, 255, 8);                                            \
  P("lld=%lld llu=%llu llx=%llx ld=%ld\n", -1234567890123LL, 18446744073709551615ULL, 0xdeadbeefcafeULL, -5L); \
  P("hd=%hd hu=%hu\n", -3, 65535);                                                                             \
  P("f=%f .2f=%.2f 10.3f=%10.3f -10.1f=%-10.1f| +f=%+f\n", 3.14159, 2.71828, 1234.5678, 0.05, 1.0);            \
  P("e=%e E=%.3E g=%g G=%G a=%a\n", 12345.678, 0.000123, 1e-7, 1e20, 1.5);                                     \
  P("inf=%f nan=%g -0=%f float=%f\n", 1.0 / 0.0, 0.5, -0.0, 0.25f);                                            \
  P("5d=%5d -5d=%-5d| 05d=%05d +d=%+d sp=% d\n", 42, 42, 42, 42, 42);                                          \
  P("c=%c%c s=%s 8s=%8s| -8s=%-8s| .2s=%.2s\n", 'o', 'k', "text", "right", "left", "cut");                     \
  P("percent=%% %d%%\n", 100);                                                                                 \
  P("many %d %d %d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);                      \
  P("no arguments\n");                                                                                         \
  P("%s|%p|%lu\n", "", static_cast<void*>(nullptr), sizeof(long));                                             \
  P("mixed %d %f %lld %s %c %x\n", 1, 2.5, 3LL, "four", '5', 6)

__global__ void Print(int* returned) {
  int* r = returned;
#define DEVICE_PRINT(...) *r++ = printf(__VA_ARGS__)
  LINES(DEVICE_PRINT);
}
__global__ void PerThread() {
  if (threadIdx.x % 2) printf("thread %d of block %d\n", threadIdx.x, blockIdx.x);
  else printf("even %u\n", threadIdx.x + blockIdx.x * blockDim.x);
}

int main() {
  Buffer<int> returned(32);
  const std::string got = CapturedOutput([&] {
    Print<<<1, 1>>>(returned);
    cudaDeviceSynchronize();
  });
  CU(cudaGetLastError());
  std::string want;
  char line[512];
#define HOST_PRINT(...) std::snprintf(line, sizeof line, __VA_ARGS__), want += line
  LINES(HOST_PRINT);
  if (got != want) std::printf("--- got\n%s--- want\n%s---\n", got.c_str(), want.c_str());
  True("formats", got == want);
  // The return value is the number of arguments.
  const int counts[] = {4, 5, 4, 2, 5, 5, 4, 5, 6, 1, 12, 0, 3, 6};
  const auto r = returned.Read();
  for (int i = 0; i < 14; ++i) Same("returned", i, r[i], counts[i]);

  const std::string lines = CapturedOutput([&] {
    PerThread<<<3, 40>>>();
    cudaDeviceSynchronize();
  });
  for (int b = 0; b < 3; ++b)
    for (int t = 0; t < 40; ++t) {
      if (t % 2) std::snprintf(line, sizeof line, "thread %d of block %d\n", t, b);
      else std::snprintf(line, sizeof line, "even %d\n", t + b * 40);
      True(line, lines.find(line) != std::string::npos);
    }
  Same("lines", 0, static_cast<int>(std::count(lines.begin(), lines.end(), '\n')), 120);
  return Verdict();
}
