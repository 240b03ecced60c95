// Managed memory: __managed__ variables, cudaMallocManaged shared by host and device, advice, prefetch, linked
// structures.
#include "app.h"

__managed__ int g_counter = 5;
__managed__ float g_table[8] = {1, 2, 4};

struct Node {
  int value;
  Node* next;
};

__global__ void Touch(int* v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = v[i] * 2 + (i < 8 ? static_cast<int>(g_table[i]) : 0);
  if (i == 0) ++g_counter;
}
__global__ void Walk(Node* head, int* sum) {
  for (Node* node = head; node; node = node->next) {
    *sum += node->value;
    node->value = -node->value;
  }
}

int main() {
  const int n = 3000;
  int* v = nullptr;
  CU(cudaMallocManaged(&v, n * sizeof(int)));
  for (int i = 0; i < n; ++i) v[i] = i;
  g_table[3] = 8;
  g_counter += 10;
  Touch<<<(n + 127) / 128, 128>>>(v, n);
  CU_LAUNCHED();
  const int table[8] = {1, 2, 4, 8};
  for (int i = 0; i < n; ++i) Same("touch", i, v[i], i * 2 + (i < 8 ? table[i] : 0));
  Same("variable", 0, g_counter, 16);

  cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
  CU(cudaMemAdvise(v, n * sizeof(int), cudaMemAdviseSetPreferredLocation, device));
  CU(cudaMemPrefetchAsync(v, n * sizeof(int), device, 0, nullptr));
  Touch<<<(n + 127) / 128, 128>>>(v, n);
  CU(cudaMemPrefetchAsync(v, n * sizeof(int), host, 0, nullptr));
  CU(cudaDeviceSynchronize());
  Same("after prefetch", 100, v[100], 400);

  // A list built by the host, walked and changed by the device.
  Node* head = nullptr;
  for (int i = 1; i <= 50; ++i) {
    Node* node = nullptr;
    CU(cudaMallocManaged(&node, sizeof(Node)));
    node->value = i, node->next = head;
    head = node;
  }
  int* sum = nullptr;
  CU(cudaMallocManaged(&sum, sizeof(int), cudaMemAttachHost));
  *sum = 0;
  Walk<<<1, 1>>>(head, sum);
  CU_LAUNCHED();
  Same("list", 0, *sum, 1275);
  Same("changed", 0, head->value, -50);

  cudaPointerAttributes attributes;
  CU(cudaPointerGetAttributes(&attributes, v));
  True("attributes",
       attributes.type == cudaMemoryTypeManaged && attributes.devicePointer == v && attributes.hostPointer == v);
  CU(cudaMemset(v, 0xff, 40));
  CU(cudaDeviceSynchronize());
  Same("memset", 9, v[9], -1);
  CU(cudaMemcpy(v, v + 100, 40, cudaMemcpyDefault));
  Same("copy", 0, v[0], 400);
  CU(cudaFree(v));
  return Verdict();
}
