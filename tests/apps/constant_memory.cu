// __constant__ data: initialised, short initialisers, written by the host, pointers in it, read at divergent indices.
#include "app.h"

struct Entry {
  short id;
  double weight;
  char tag[3];
};
__constant__ int kTable[64] = {3, 1, 4, 1, 5, 9, 2, 6};
__constant__ Entry kEntries[5] = {{1, 0.5, {'a', 'b', 'c'}}, {-2, 1e100, {'x'}}};
__constant__ float kWritten[16];
__device__ int g_values[4] = {10, 20, 30, 40};
__constant__ int* kPointer = g_values + 1;
__device__ const char* g_text = "hello";

__global__ void Kernel(double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Entry& e = kEntries[i % 5];
  out[i] = kTable[(i * 37) & 63] + kWritten[i & 15] + e.id * 100 + (e.tag[i % 3]) +
           (e.weight == 1e100 ? 5000 : e.weight) + kPointer[(i % 4) - 1] * 1e6 + g_text[i % 6] * 1e9;
}

int main() {
  const int n = 700;
  float written[16];
  for (int i = 0; i < 16; ++i) written[i] = i * 0.125f;
  CU(cudaMemcpyToSymbol(kWritten, written, sizeof written));
  const float patch = -7;
  CU(cudaMemcpyToSymbol(kWritten, &patch, 4, 5 * 4));
  written[5] = patch;
  Buffer<double> out(n);
  Kernel<<<7, 100>>>(out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  const int table[8] = {3, 1, 4, 1, 5, 9, 2, 6}, values[4] = {10, 20, 30, 40};
  const char tags[2][3] = {{'a', 'b', 'c'}, {'x', 0, 0}};
  for (int i = 0; i < n; ++i) {
    const int slot = (i * 37) & 63, e = i % 5;
    const double weight = e == 0 ? 0.5 : e == 1 ? 5000 : 0;
    const double want = (slot < 8 ? table[slot] : 0) + written[i & 15] +
                        (e == 0   ? 100
                         : e == 1 ? -200
                                  : 0) +
                        (e < 2 ? tags[e][i % 3] : 0) + weight + values[i % 4] * 1e6 + "hello"[i % 6] * 1e9;
    Near("constant", i, got[i], want, 1e-13);
  }
  float back[16];
  CU(cudaMemcpyFromSymbol(back, kWritten, sizeof back));
  for (int i = 0; i < 16; ++i) Same("read back", i, back[i], written[i]);
  return Verdict();
}
