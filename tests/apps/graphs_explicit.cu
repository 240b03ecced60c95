// Graphs built node by node: kernel, copy, set, host, empty and child nodes; changed parameters; memory nodes.
#include "app.h"

__global__ void Affine(int* v, int scale, int offset, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = v[i] * scale + offset;
}
int g_seen = 0;

cudaKernelNodeParams KernelParams(void** arguments, int n) {
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(Affine);
  params.gridDim = dim3((n + 127) / 128), params.blockDim = dim3(128);
  params.kernelParams = arguments;
  return params;
}

int main() {
  int n = 500;
  Buffer<int> data(n);
  std::vector<int> out(n, -1);
  int* pointer = data;
  cudaGraph_t graph, child;
  CU(cudaGraphCreate(&graph, 0));
  CU(cudaGraphCreate(&child, 0));

  cudaGraphNode_t set, first, second, nested, copy, host, empty;
  cudaMemsetParams memset = {};
  memset.dst = pointer, memset.value = 4, memset.elementSize = 4, memset.width = n, memset.height = 1;
  CU(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &memset));
  int scale = 2, offset = 1;
  void* arguments[] = {&pointer, &scale, &offset, &n};
  cudaKernelNodeParams params = KernelParams(arguments, n);
  CU(cudaGraphAddKernelNode(&first, graph, &set, 1, &params));
  scale = 10, offset = 5;
  CU(cudaGraphAddKernelNode(&second, child, nullptr, 0, &params));
  CU(cudaGraphAddChildGraphNode(&nested, graph, &first, 1, child));
  CU(cudaGraphAddEmptyNode(&empty, graph, &nested, 1));
  CU(cudaGraphAddMemcpyNode1D(&copy, graph, &empty, 1, out.data(), pointer, n * sizeof(int), cudaMemcpyDeviceToHost));
  cudaHostNodeParams function = {};
  function.fn = [](void* p) { g_seen = *static_cast<int*>(p); };
  function.userData = &out[3];
  CU(cudaGraphAddHostNode(&host, graph, &copy, 1, &function));

  cudaGraphExec_t exec;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  CU(cudaGraphLaunch(exec, nullptr));
  CU(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i) Same("first launch", i, out[i], (4 * 2 + 1) * 10 + 5);
  Same("host node", 0, g_seen, 95);

  scale = 3, offset = 0;
  CU(cudaGraphExecKernelNodeSetParams(exec, first, &params));
  CU(cudaGraphLaunch(exec, nullptr));
  CU(cudaDeviceSynchronize());
  Same("changed", 0, out[10], 4 * 3 * 10 + 5);

  // The child's parameters, by a graph of the same form; what is no such graph changes nothing.
  cudaGraph_t other;
  CU(cudaGraphCreate(&other, 0));
  cudaGraphNode_t replaced;
  scale = 7, offset = 2;
  CU(cudaGraphAddKernelNode(&replaced, other, nullptr, 0, &params));
  cudaGraphNodeParams node = {};
  node.type = cudaGraphNodeTypeGraph;
  node.graph.graph = other;
  CU(cudaGraphExecNodeSetParams(exec, nested, &node));
  CU(cudaGraphLaunch(exec, nullptr));
  CU(cudaDeviceSynchronize());
  Same("changed child", 0, out[10], 4 * 3 * 7 + 2);
  CU(cudaGraphAddEmptyNode(&replaced, other, nullptr, 0));
  True("another form", cudaGraphExecNodeSetParams(exec, nested, &node) != cudaSuccess);
  cudaGetLastError();
  CU(cudaGraphLaunch(exec, nullptr));
  CU(cudaDeviceSynchronize());
  Same("not changed", 0, out[10], 4 * 3 * 7 + 2);
  CU(cudaGraphDestroy(other));

  cudaGraphNodeType type;
  CU(cudaGraphNodeGetType(copy, &type));
  True("type", type == cudaGraphNodeTypeMemcpy);
  cudaKernelNodeParams back = {};
  CU(cudaGraphKernelNodeGetParams(first, &back));
  True("grid", back.gridDim.x == 4 && back.blockDim.x == 128);
  std::size_t count = 1;
  CU(cudaGraphGetRootNodes(graph, nullptr, &count));
  Same("roots", 0, count, std::size_t{1});
  cudaGraphExec_t bad = nullptr;
  const bool added = cudaGraphAddDependencies(graph, &host, &set, nullptr, 1) == cudaSuccess;
  True("cycle refused", !added || cudaGraphInstantiate(&bad, graph, 0) != cudaSuccess);
  cudaGetLastError();

  // A graph that allocates and frees its own memory.
  cudaGraph_t own;
  CU(cudaGraphCreate(&own, 0));
  cudaMemAllocNodeParams allocation = {};
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location.type = cudaMemLocationTypeDevice;
  allocation.bytesize = n * sizeof(int);
  cudaGraphNode_t alloc_node, set_node, copy_node, free_node;
  CU(cudaGraphAddMemAllocNode(&alloc_node, own, nullptr, 0, &allocation));
  memset.dst = allocation.dptr, memset.value = 77;
  CU(cudaGraphAddMemsetNode(&set_node, own, &alloc_node, 1, &memset));
  CU(cudaGraphAddMemcpyNode1D(&copy_node, own, &set_node, 1, out.data(), allocation.dptr, n * sizeof(int),
                              cudaMemcpyDeviceToHost));
  CU(cudaGraphAddMemFreeNode(&free_node, own, &copy_node, 1, allocation.dptr));
  cudaGraphExec_t own_exec;
  CU(cudaGraphInstantiate(&own_exec, own, 0));
  for (int round = 0; round < 2; ++round) CU(cudaGraphLaunch(own_exec, nullptr));
  CU(cudaDeviceSynchronize());
  Same("own memory", 0, out[n - 1], 77);
  return Verdict();
}
