// Pinned, mapped and registered host memory: kernels reading and writing it, flags, attributes, errors.
#include "app.h"

__global__ void Increment(int* v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] += i;
}

int main() {
  // What a pointer is may be the first question of a program.
  cudaPointerAttributes first = {};
  int here = 0;
  CU(cudaPointerGetAttributes(&first, nullptr));
  True("null", first.type == cudaMemoryTypeUnregistered && first.devicePointer == nullptr);
  CU(cudaPointerGetAttributes(&first, &here));
  True("of the host", first.type == cudaMemoryTypeUnregistered);
  const int n = 5000;
  int *pinned = nullptr, *mapped = nullptr, *view = nullptr;
  CU(cudaMallocHost(&pinned, n * sizeof(int)));
  CU(cudaHostAlloc(&mapped, n * sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable | cudaHostAllocWriteCombined));
  for (int i = 0; i < n; ++i) pinned[i] = 7, mapped[i] = 9;
  CU(cudaHostGetDevicePointer(&view, mapped, 0));
  Increment<<<(n + 127) / 128, 128>>>(view, n);
  Increment<<<(n + 127) / 128, 128>>>(pinned, n);  // unified addressing: the host pointer itself
  CU_LAUNCHED();
  for (int i = 0; i < n; ++i) Same("mapped", i, mapped[i], 9 + i), Same("pinned", i, pinned[i], 7 + i);
  unsigned flags = 0;
  CU(cudaHostGetFlags(&flags, mapped));
  True("flags", flags & cudaHostAllocMapped);

  std::vector<int> ordinary(n + 2048, 3);
  // Registration works on any range; kernels may then use it.
  int* inside = ordinary.data() + 5;
  CU(cudaHostRegister(inside, n * sizeof(int), cudaHostRegisterMapped));
  CU(cudaHostGetDevicePointer(&view, inside, 0));
  Increment<<<(n + 127) / 128, 128>>>(view, n);
  CU_LAUNCHED();
  for (int i = 0; i < n; ++i) Same("registered", i, inside[i], 3 + i);
  cudaPointerAttributes attributes;
  CU(cudaPointerGetAttributes(&attributes, inside));
  True("registered type", attributes.type == cudaMemoryTypeHost && attributes.hostPointer == inside);
  Error("twice", cudaHostRegister(inside, 64, 0), cudaErrorHostMemoryAlreadyRegistered);
  CU(cudaHostUnregister(inside));
  Error("not registered", cudaHostUnregister(inside), cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();
  CU(cudaPointerGetAttributes(&attributes, inside));
  True("unregistered type", attributes.type == cudaMemoryTypeUnregistered);

  Buffer<int> device(n);
  CU(cudaPointerGetAttributes(&attributes, static_cast<int*>(device) + 17));
  True("device type", attributes.type == cudaMemoryTypeDevice && attributes.device == 0 &&
                          attributes.devicePointer == static_cast<int*>(device) + 17);
  cudaStream_t stream;
  CU(cudaStreamCreate(&stream));
  CU(cudaMemcpyAsync(device, pinned, n * sizeof(int), cudaMemcpyHostToDevice, stream));
  Increment<<<(n + 127) / 128, 128, 0, stream>>>(device, n);
  CU(cudaMemcpyAsync(mapped, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CU(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) Same("asynchronous", i, mapped[i], 7 + 2 * i);
  CU(cudaFreeHost(pinned));
  CU(cudaFreeHost(mapped));
  Error("not ours", cudaFreeHost(ordinary.data()), cudaErrorInvalidValue);
  return Verdict();
}
