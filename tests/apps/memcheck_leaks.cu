// Leaves behind one of what its arguments name, and frees one of everything. memcheck_leaks_test.py knows what has to
// be told.
#include <cuda.h>

#include <cstring>
#include <string>

#include "app.h"

__global__ void Allocate(bool frees, void** kept) {
  *kept = malloc(100 + threadIdx.x);
  if (frees) free(*kept);
}

static cudaTextureObject_t MakeTexture(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc texture{};
  cudaTextureObject_t object = 0;
  CU(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
  return object;
}

/// Of all sorts one, and frees all but `left`.
static void MakeOneOfEach(const std::string& left) {
  const auto frees = [&](const char* name) { return left != name; };
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr, other = nullptr;
  CU(cudaMallocArray(&array, &format, 64, 16));
  CU(cudaMallocArray(&other, &format, 8, 8, cudaArraySurfaceLoadStore));
  cudaMipmappedArray_t mipmap = nullptr;
  cudaArray_t level = nullptr;
  CU(cudaMallocMipmappedArray(&mipmap, &format, cudaExtent{32, 32, 0}, 3));
  CU(cudaGetMipmappedArrayLevel(&level, mipmap, 1));
  const cudaTextureObject_t texture = MakeTexture(other);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = other;
  cudaSurfaceObject_t surface = 0;
  CU(cudaCreateSurfaceObject(&surface, &resource));

  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t granularity = 0;
  CUmemGenericAllocationHandle physical = 0;
  cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (cuMemCreate(&physical, granularity, &prop, 0) != CUDA_SUCCESS) std::abort();

  void** kept = nullptr;
  CU(cudaMallocManaged(&kept, sizeof(void*)));
  Allocate<<<1, 1>>>(frees("heap"), kept);
  CU(cudaDeviceSynchronize());

  cudaStream_t stream = nullptr, stream2 = nullptr;
  CU(cudaStreamCreate(&stream));
  CU(cudaStreamCreate(&stream2));
  cudaEvent_t event = nullptr;
  CU(cudaEventCreate(&event));
  cudaGraph_t graph = nullptr, child = nullptr;
  cudaGraphNode_t node = nullptr;
  CU(cudaGraphCreate(&graph, 0));
  CU(cudaGraphCreate(&child, 0));
  CU(cudaGraphAddEmptyNode(&node, child, nullptr, 0));
  CU(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  cudaGraph_t inner = nullptr;
  CU(cudaGraphChildGraphNodeGetGraph(node, &inner));
  cudaGraphExec_t exec = nullptr;
  CU(cudaGraphInstantiate(&exec, graph, 0));

  CU(cudaFree(kept));
  if (frees("texture")) CU(cudaDestroyTextureObject(texture));
  if (frees("surface")) CU(cudaDestroySurfaceObject(surface));
  if (frees("array")) CU(cudaFreeArray(array));
  CU(cudaFreeArray(other));
  if (frees("mipmap")) CU(cudaFreeMipmappedArray(mipmap));
  if (frees("physical")) cuMemRelease(physical);
  if (frees("stream")) {
    CU(cudaStreamDestroy(stream));
    CU(cudaStreamDestroy(stream2));
  }
  if (frees("event")) CU(cudaEventDestroy(event));
  if (frees("exec")) CU(cudaGraphExecDestroy(exec));
  if (frees("graph")) CU(cudaGraphDestroy(graph));
  CU(cudaGraphDestroy(child));
}

int main(int argc, char** argv) {
  MakeOneOfEach(argc > 1 ? argv[1] : "");
  if (argc > 2 && std::strcmp(argv[2], "reset") == 0) CU(cudaDeviceReset());
  return 0;
}
