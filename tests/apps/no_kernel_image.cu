// Built with machine code only (no PTX): launching reports no kernel image and the program lives on.
#include "app.h"

__global__ void Kernel(int* out) { *out = 1; }

int main() {
  int* p = nullptr;
  CU(cudaMalloc(&p, 4));
  Kernel<<<1, 1>>>(p);
  Error("launch", cudaGetLastError(), cudaErrorNoKernelImageForDevice);
  Error("not sticky", cudaDeviceSynchronize(), cudaSuccess);
  cudaFuncAttributes attributes;
  True("attributes", cudaFuncGetAttributes(&attributes, Kernel) != cudaSuccess);
  cudaGetLastError();
  const int value = 7;
  int back = 0;
  CU(cudaMemcpy(p, &value, 4, cudaMemcpyHostToDevice));
  CU(cudaMemcpy(&back, p, 4, cudaMemcpyDeviceToHost));
  Same("copies still work", 0, back, 7);
  return Verdict();
}
