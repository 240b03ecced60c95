// Thread-private arrays with run-time indices, private structs by address, alloca, deep frames.
#include "app.h"

__global__ void Histogram(const unsigned* in, unsigned* out, int n) {
  unsigned counts[16] = {};
  for (int i = threadIdx.x; i < n; i += blockDim.x) ++counts[(in[i] >> (threadIdx.x & 7)) & 15];
  for (int k = 0; k < 16; ++k) out[threadIdx.x * 16 + k] = counts[k];
}
struct Matrix {
  double m[3][3];
};
__device__ __noinline__ void Multiply(const Matrix* a, const Matrix* b, Matrix* r) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double sum = 0;
      for (int k = 0; k < 3; ++k) sum += a->m[i][k] * b->m[k][j];
      r->m[i][j] = sum;
    }
}
__global__ void Power(double* out) {
  Matrix a = {{{1, 0.5, 0}, {0, 1, 0.25 * (threadIdx.x % 5)}, {0.1, 0, 1}}}, r = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, t;
  for (unsigned k = 0; k < threadIdx.x % 7; ++k) Multiply(&r, &a, &t), r = t;
  for (int i = 0; i < 9; ++i) out[threadIdx.x * 9 + i] = r.m[i / 3][i % 3];
}
__global__ void Reverse(const unsigned char* in, unsigned char* out, int n) {
  const int count = 1 + threadIdx.x % n;
  unsigned char* copy = static_cast<unsigned char*>(alloca(count));
  for (int i = 0; i < count; ++i) copy[i] = in[i];
  for (int i = 0; i < count; ++i) out[threadIdx.x * n + i] = copy[count - 1 - i];
}

int main() {
  const int n = 999, threads = 70;
  std::vector<unsigned> in(n);
  Random random(2);
  for (auto& v : in) v = random.Next();
  Buffer<unsigned> din(in), out(threads * 16);
  Histogram<<<1, threads>>>(din, out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int t = 0; t < threads; ++t) {
    unsigned want[16] = {};
    for (int i = t; i < n; i += threads) ++want[(in[i] >> (t & 7)) & 15];
    for (int k = 0; k < 16; ++k) Same("histogram", t * 16 + k, got[t * 16 + k], want[k]);
  }
  Buffer<double> power(64 * 9);
  Power<<<1, 64>>>(power);
  CU_LAUNCHED();
  const auto p = power.Read();
  for (int t = 0; t < 64; ++t) {
    double a[3][3] = {{1, 0.5, 0}, {0, 1, 0.25 * (t % 5)}, {0.1, 0, 1}}, r[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int k = 0; k < t % 7; ++k) {
      double s[3][3] = {};
      for (int i = 0; i < 27; ++i) s[i / 9][i / 3 % 3] += r[i / 9][i % 3] * a[i % 3][i / 3 % 3];
      std::memcpy(r, s, sizeof r);
    }
    for (int i = 0; i < 9; ++i) Near("power", t * 9 + i, p[t * 9 + i], r[i / 3][i % 3], 1e-12, 1e-15);
  }
  const int width = 50;
  std::vector<unsigned char> bytes(width);
  for (int i = 0; i < width; ++i) bytes[i] = i * 5;
  Buffer<unsigned char> db(bytes), reversed(width * 64);
  Reverse<<<1, 64>>>(db, reversed, width);
  CU_LAUNCHED();
  const auto r = reversed.Read();
  for (int t = 0; t < 64; ++t)
    for (int i = 0; i <= t % width; ++i) Same("alloca", t * width + i, r[t * width + i], bytes[t % width - i]);
  return Verdict();
}
