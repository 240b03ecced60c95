// Device variables by symbol: copies with offsets, addresses and sizes, static per-file variables, initialised
// pointers.
#include "app.h"

__device__ int g_counter;
__device__ double g_table[10] = {0.5, 1.5};
static __device__ unsigned char g_bytes[7] = {1, 2, 3};
struct Config {
  int mode;
  float scale[3];
  int* link;
};
__device__ Config g_config = {3, {1, 2, 3}, &g_counter};
__device__ Config* g_pointer = &g_config;
template <int kSlot>
__device__ int g_slot = kSlot * 11;

__global__ void Kernel(double* out) {
  atomicAdd(&g_counter, 1);
  if (threadIdx.x == 0)
    out[0] = g_table[1] + g_table[9], out[1] = g_bytes[2],
    out[2] = g_pointer->scale[2] + (g_pointer->link == &g_counter ? 0.5 : 0), out[3] = g_slot<2> + g_slot<5>;
}
__global__ void Bump() { g_bytes[threadIdx.x] += 100; }

int main() {
  Buffer<double> out(4);
  const double nine = 90.25;
  CU(cudaMemcpyToSymbol(g_table, &nine, 8, 9 * 8));
  const float scale = 77;
  CU(cudaMemcpyToSymbol(g_config, &scale, 4, offsetof(Config, scale) + 8));
  Kernel<<<3, 50>>>(out);
  CU_LAUNCHED();
  const auto o = out.Read();
  Same("table", 0, o[0], 1.5 + 90.25), Same("bytes", 0, o[1], 3.0), Same("pointer", 0, o[2], 77.5),
      Same("template", 0, o[3], 77.0);
  int counter = 0;
  CU(cudaMemcpyFromSymbol(&counter, g_counter, sizeof counter));
  Same("counter", 0, counter, 150);
  void* address = nullptr;
  std::size_t size = 0;
  CU(cudaGetSymbolAddress(&address, g_table));
  CU(cudaGetSymbolSize(&size, g_table));
  Same("size", 0, size, sizeof(double) * 10);
  double through = 0;
  CU(cudaMemcpy(&through, static_cast<double*>(address) + 9, 8, cudaMemcpyDeviceToHost));
  Same("address", 0, through, 90.25);
  Bump<<<1, 7>>>();
  CU_LAUNCHED();
  unsigned char bytes[7];
  CU(cudaMemcpyFromSymbolAsync(bytes, g_bytes, 7, 0, cudaMemcpyDeviceToHost, nullptr));
  CU(cudaDeviceSynchronize());
  for (int i = 0; i < 7; ++i) Same("bump", i, int(bytes[i]), 100 + (i < 3 ? i + 1 : 0));
  Error("beyond", cudaMemcpyToSymbol(g_bytes, bytes, 7, 3), cudaErrorInvalidValue);
  cudaGetLastError();
  return Verdict();
}
