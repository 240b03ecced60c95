// cuStreamWaitValue, cuStreamWriteValue and batches of them between two streams; user objects; launch attributes.
#include "driver.h"

__global__ void Append(int* out, int digit) { *out = *out * 10 + digit; }
int g_freed = 0;

int main() {
  Buffer<int> cell(4);
  int* p = cell;
  cudaStream_t a, b;
  CU(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CU(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  const CUdeviceptr flag = reinterpret_cast<CUdeviceptr>(p + 2);
  // Lazy loading may have to wait for the device, which waits for the host here: the kernel is loaded before that (CUDA
  // C++ Programming Guide, "Lazy Loading", on concurrent execution).
  Append<<<1, 1>>>(p + 1, 0);
  CU_LAUNCHED();
  // b waits until a has written 3 or more.
  DRV(cuStreamWaitValue32(b, flag, 3, CU_STREAM_WAIT_VALUE_GEQ));
  Append<<<1, 1, 0, b>>>(p + 1, 2);
  Error("waiting", cudaStreamQuery(b), cudaErrorNotReady);
  Append<<<1, 1, 0, a>>>(p + 1, 1);
  DRV(cuStreamWriteValue32(a, flag, 3, CU_STREAM_WRITE_VALUE_DEFAULT));
  CU(cudaStreamSynchronize(b));
  Same("order", 0, cell.Read()[1], 12);
  CUstreamBatchMemOpParams batch[2] = {};
  batch[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, batch[0].waitValue.address = flag;
  batch[0].waitValue.value = 3, batch[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  batch[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, batch[1].writeValue.address = flag;
  batch[1].writeValue.value = 9;
  DRV(cuStreamBatchMemOp(a, 2, batch, 0));
  CU(cudaStreamSynchronize(a));
  Same("batch", 0, cell.Read()[2], 9);

  // A user object lives as long as the graph that holds it.
  cudaUserObject_t object;
  cudaGraph_t graph;
  CU(cudaUserObjectCreate(
      &object, nullptr, [](void*) { ++g_freed; }, 1, cudaUserObjectNoDestructorSync));
  CU(cudaGraphCreate(&graph, 0));
  CU(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  Same("held", 0, g_freed, 0);
  CU(cudaGraphDestroy(graph));
  for (int wait = 0; wait < 100 && g_freed == 0; ++wait) CU(cudaDeviceSynchronize());
  Same("freed", 0, g_freed, 1);

  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributePriority, attribute.val.priority = 0;
  config.gridDim = dim3(1), config.blockDim = dim3(1), config.stream = a, config.attrs = &attribute,
  config.numAttrs = 1;
  CU(cudaLaunchKernelEx(&config, Append, p + 3, 8));
  CU(cudaStreamSynchronize(a));
  Same("attributes", 0, cell.Read()[3], 8);
  return Verdict();
}
