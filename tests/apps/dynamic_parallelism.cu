// Launches from the device: nested grids, several children, tail and fire-and-forget launches, a recursive quicksort,
// the order of what grids print.
#include "captured_output.h"

__global__ void Leaf(int* out, int base, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[base + i] += base + i;
}
__global__ void Parent(int* out, int chunk) {
  const int base = (blockIdx.x * blockDim.x + threadIdx.x) * chunk;
  for (int i = 0; i < chunk; ++i) out[base + i] = 1000;  // the child sees its parent's writes
  Leaf<<<(chunk + 15) / 16, 16>>>(out, base, chunk);
}
__global__ void Double(int* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] *= 2;
}
__global__ void Add(int* out, int n, int v) {
  const int i = threadIdx.x;
  if (i < n) atomicAdd(&out[i], v);  // its parent may still run
}
__global__ void Tail(int* out, int n) {
  if (threadIdx.x == 0) {
    Double<<<1, n, 0, cudaStreamTailLaunch>>>(out, n);  // after this grid and all its children
    Add<<<1, n>>>(out, n, 5);
  }
  __syncthreads();
  if (threadIdx.x < n) atomicAdd(&out[threadIdx.x], 1);
}
__global__ void QuickSort(int* v, int low, int high, int depth) {
  if (high - low < 12 || depth > 14) {
    for (int i = low + 1; i <= high; ++i)
      for (int j = i; j > low && v[j - 1] > v[j]; --j) {
        const int swap = v[j];
        v[j] = v[j - 1], v[j - 1] = swap;
      }
    return;
  }
  const int pivot = v[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (v[i] < pivot) ++i;
    while (v[j] > pivot) --j;
    if (i <= j) {
      const int swap = v[i];
      v[i++] = v[j], v[j--] = swap;
    }
  }
  if (low < j) QuickSort<<<1, 1, 0, cudaStreamFireAndForget>>>(v, low, j, depth + 1);
  if (i < high) QuickSort<<<1, 1, 0, cudaStreamFireAndForget>>>(v, i, high, depth + 1);
}
// printf has one buffer for all grids: what a grid printed before it launched another one stands before what that one
// prints.
__global__ void PrintDepth(int depth, int most) {
  printf("%d ", depth);
  if (depth < most) PrintDepth<<<1, 1>>>(depth + 1, most);
}

int main() {
  const int chunk = 37, parents = 24;
  Buffer<int> out(chunk * parents), tail(60);
  Parent<<<3, 8>>>(out, chunk);
  Tail<<<1, 64>>>(tail, 60);
  const int n = 500;
  std::vector<int> v(n);
  Random random(41);
  long want = 0, sum = 0;
  for (auto& x : v) x = static_cast<int>(random.Next() % 10000), want += x;
  Buffer<int> keys(v);
  QuickSort<<<1, 1>>>(keys, 0, n - 1, 0);
  CU_LAUNCHED();
  const auto o = out.Read(), t = tail.Read(), k = keys.Read();
  for (int i = 0; i < chunk * parents; ++i) Same("leaf", i, o[i], 1000 + i);
  for (int i = 0; i < 60; ++i) Same("tail", i, t[i], (1 + 5) * 2);
  for (int i = 0; i < n; ++i) {
    sum += k[i];
    if (i) True("sorted", k[i - 1] <= k[i]);
  }
  Same("sum", 0, sum, want);
  const std::string depths = CapturedOutput([] {
    for (int i = 0; i < 20; ++i) PrintDepth<<<1, 1>>>(0, 3);
    cudaDeviceSynchronize();
  });
  std::string in_order;
  for (int i = 0; i < 20; ++i) in_order += "0 1 2 3 ";
  Same("order of printf", 0, depths == in_order, true);
  return Verdict();
}
