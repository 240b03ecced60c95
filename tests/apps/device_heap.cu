// malloc, free, new and delete on the device: lists, per-thread arrays, memory that lives on to the next kernel,
// exhaustion.
#include "app.h"

struct Node {
  int value;
  Node* next;
};

__global__ void Build(Node** heads, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  Node* head = nullptr;
  for (int k = 0; k <= t % 9; ++k) {
    Node* node = static_cast<Node*>(malloc(sizeof(Node)));
    node->value = t * 10 + k, node->next = head;
    head = node;
  }
  heads[t] = head;
}
__global__ void Consume(Node** heads, int* sums, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int sum = 0;
  for (Node* node = heads[n - 1 - t]; node;) {
    Node* next = node->next;
    sum += node->value;
    free(node);
    node = next;
  }
  sums[n - 1 - t] = sum;
}
__global__ void PerBlock(int* out) {
  __shared__ int* data;
  if (threadIdx.x == 0) data = new int[blockDim.x * 2];
  __syncthreads();
  data[threadIdx.x] = threadIdx.x * 3 + blockIdx.x;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) delete[] data;
}
__global__ void Exhaust(int* failed, int* aligned) {
  void* p = malloc(std::size_t{1} << 40);
  *failed = p == nullptr;
  void* q = malloc(3);
  *aligned = q != nullptr && reinterpret_cast<std::size_t>(q) % 16 == 0;
  free(q), free(nullptr);
}

int main() {
  CU(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
  std::size_t heap = 0;
  CU(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
  True("heap size", heap >= 32u << 20);
  const int n = 1000;
  Buffer<Node*> heads(n);
  Buffer<int> sums(n), out(7 * 65), flags(2);
  for (int round = 0; round < 3; ++round) {
    Build<<<8, 128>>>(heads, n);
    Consume<<<8, 128>>>(heads, sums, n);
    CU_LAUNCHED();
    const auto got = sums.Read();
    for (int t = 0; t < n; ++t) {
      const int m = t % 9 + 1;
      Same("sum", t, got[t], t * 10 * m + m * (m - 1) / 2);
    }
  }
  PerBlock<<<7, 65>>>(out);
  Exhaust<<<1, 1>>>(flags, static_cast<int*>(flags) + 1);
  CU_LAUNCHED();
  const auto o = out.Read(), f = flags.Read();
  for (int i = 0; i < 7 * 65; ++i) Same("block", i, o[i], (64 - i % 65) * 3 + i / 65);
  Same("refused", 0, f[0], 1), Same("aligned", 0, f[1], 1);
  return Verdict();
}
