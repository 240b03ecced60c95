// cudaLaunchKernelEx: whatever attribute a launch has, the kernel sees its grid and, where it asked for one, its
// cluster. So do kernel nodes of graphs whose attributes are set after they were made.
#include <cuda_runtime.h>

#include <vector>

#include "app.h"

struct Place {
  unsigned x, y, grid_x, grid_y, cluster;
};

__global__ void Where(Place* out) {
  unsigned cluster;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(cluster));
  if (threadIdx.x == 0)
    out[blockIdx.y * gridDim.x + blockIdx.x] = {blockIdx.x, blockIdx.y, gridDim.x, gridDim.y, cluster};
}

const dim3 kGrid(6, 5);

void Check(const char* what, Buffer<Place>& places, unsigned cluster) {
  const auto read = places.Read();
  for (unsigned i = 0; i < kGrid.x * kGrid.y; ++i) {
    const Place& place = read[i];
    Same(what, i, place.y * kGrid.x + place.x, i), Same(what, i, place.grid_x, kGrid.x),
        Same(what, i, place.grid_y, kGrid.y);
    Same(what, i, place.cluster, cluster);
  }
  CU(cudaMemset(places, 0, kGrid.x * kGrid.y * sizeof(Place)));
}

void Launch(const char* what, const std::vector<cudaLaunchAttribute>& attributes, unsigned cluster = 1) {
  Buffer<Place> places(kGrid.x * kGrid.y);
  cudaLaunchConfig_t config{};
  config.gridDim = kGrid;
  config.blockDim = 32;
  config.attrs = const_cast<cudaLaunchAttribute*>(attributes.data());
  config.numAttrs = static_cast<unsigned>(attributes.size());
  CU(cudaLaunchKernelEx(&config, Where, static_cast<Place*>(places)));
  CU(cudaDeviceSynchronize());
  Check(what, places, cluster);
}

cudaLaunchAttribute Attribute(cudaLaunchAttributeID id) {
  cudaLaunchAttribute attribute{};
  attribute.id = id;
  return attribute;
}

void Attributes() {
  auto priority = Attribute(cudaLaunchAttributePriority);
  priority.val.priority = -3;
  auto serialization = Attribute(cudaLaunchAttributeProgrammaticStreamSerialization);
  serialization.val.programmaticStreamSerializationAllowed = 1;
  auto cooperative = Attribute(cudaLaunchAttributeCooperative);
  cooperative.val.cooperative = 1;
  auto domain = Attribute(cudaLaunchAttributeMemSyncDomain);
  domain.val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
  auto window = Attribute(cudaLaunchAttributeAccessPolicyWindow);
  auto cluster = Attribute(cudaLaunchAttributeClusterDimension);
  cluster.val.clusterDim = {3, 1, 1};
  auto event = Attribute(cudaLaunchAttributeProgrammaticEvent);
  CU(cudaEventCreateWithFlags(&event.val.programmaticEvent.event, cudaEventDisableTiming));

  Launch("no attribute", {});
  Launch("priority", {priority});
  Launch("stream serialization", {serialization});
  Launch("cooperative", {cooperative});
  Launch("memory domain and window", {domain, window});
  Launch("cluster", {cluster}, 3);
  Launch("event", {event});
  CU(cudaEventSynchronize(event.val.programmaticEvent.event));
  Launch("all together", {priority, serialization, domain, event, cluster}, 3);
  CU(cudaEventDestroy(event.val.programmaticEvent.event));
}

void GraphNodes() {
  Buffer<Place> places(kGrid.x * kGrid.y);
  Place* out = places;
  void* args[] = {&out};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(Where);
  params.gridDim = kGrid;
  params.blockDim = 32;
  params.kernelParams = args;
  cudaGraph_t graph;
  cudaGraphNode_t node;
  CU(cudaGraphCreate(&graph, 0));
  CU(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  for (const unsigned cluster : {1u, 2u, 1u}) {
    cudaLaunchAttributeValue value{};
    value.clusterDim = {cluster, 1, 1};
    CU(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
    cudaGraphExec_t exec;
    CU(cudaGraphInstantiate(&exec, graph, 0));
    CU(cudaGraphLaunch(exec, nullptr));
    CU(cudaDeviceSynchronize());
    Check("graph node", places, cluster);
    CU(cudaGraphExecDestroy(exec));
  }
  CU(cudaGraphDestroy(graph));
}

int main() {
  Attributes();
  GraphNodes();
  return Verdict();
}
