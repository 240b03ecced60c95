// The first form of dynamic parallelism (CUDA 5 to 12): a block waits for what it launched by cudaDeviceSynchronize.
#include "app.h"

__global__ void Square(int* v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] *= v[i];
}
// Every block launches, waits, and uses the result; its other warps wait at a barrier meanwhile.
__global__ void Parent(int* v, int* sums, int n) {
  int* const mine = v + blockIdx.x * n;
  __shared__ int sum;
  if (threadIdx.x == 0) {
    sum = 0;
    Square<<<(n + 63) / 64, 64>>>(mine, n);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&sum, mine[i]);
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
// Sums [first, first + n) into cells[node]; every level waits for the two grids of the next one.
__global__ void Tree(const int* v, int* cells, int node, int first, int n) {
  if (n == 1) {
    cells[node] = v[first];
    return;
  }
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Tree<<<1, 1>>>(v, cells, 2 * node, first, n / 2);
  Tree<<<1, 1, 0, stream>>>(v, cells, 2 * node + 1, first + n / 2, n - n / 2);
  cudaStreamDestroy(stream);
  if (cudaDeviceSynchronize() == cudaSuccess) cells[node] = cells[2 * node] + cells[2 * node + 1];
}

int main() {
  const int blocks = 40, n = 150;
  std::vector<int> v(blocks * n);
  for (int i = 0; i < blocks * n; ++i) v[i] = i % 37;
  Buffer<int> values(v), sums(blocks);
  Parent<<<blocks, 96>>>(values, sums, n);
  CU_LAUNCHED();
  const auto s = sums.Read();
  for (int b = 0; b < blocks; ++b) {
    int want = 0;
    for (int i = 0; i < n; ++i) want += v[b * n + i] * v[b * n + i];
    Same("sum", b, s[b], want);
  }
  CU(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 8));
  const int leaves = 32;
  std::vector<int> numbers(leaves);
  int want = 0;
  for (int i = 0; i < leaves; ++i) want += numbers[i] = 3 * i + 1;
  Buffer<int> input(numbers), cells(64);
  Tree<<<1, 1>>>(input, cells, 1, 0, leaves);
  CU_LAUNCHED();
  Same("tree", 0, cells.Read()[1], want);
  return Verdict();
}
