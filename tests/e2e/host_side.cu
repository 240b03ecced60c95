// Copies of all kinds, waits behind them, and ways to share memory with kernels: what a trace says of them is checked
// by host_side_test.py, which names the parts as arguments.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CU(call)                                                         \
  do {                                                                   \
    if (const cudaError_t error = (call); error != cudaSuccess) {        \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

__constant__ int g_constant[8];
__device__ int g_variable[8];

__global__ void Store(int* p) { *p = g_constant[threadIdx.x] + g_variable[0]; }

constexpr std::size_t kRows = 5, kWidth = 300;

void Copies(int* device) {
  std::vector<char> host(1 << 16);
  char *pitched = nullptr, *other = nullptr;
  std::size_t pitch = 0;
  CU(cudaMallocPitch(&pitched, &pitch, kWidth, kRows));
  CU(cudaMalloc(&other, 1 << 16));
  CU(cudaMemcpy2D(pitched, pitch, host.data(), kWidth, kWidth, kRows, cudaMemcpyHostToDevice));
  CU(cudaMemcpy2D(other, kWidth + 4, pitched, pitch, kWidth, kRows, cudaMemcpyDeviceToDevice));
  CU(cudaMemset2D(pitched, pitch, 1, kWidth, kRows));
  CU(cudaMemcpy2D(host.data(), kWidth, pitched, pitch, kWidth, kRows, cudaMemcpyDeviceToHost));
  CU(cudaMemcpyToSymbol(g_constant, host.data(), sizeof g_constant));
  CU(cudaMemcpyToSymbol(g_variable, host.data(), sizeof g_variable));
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  CU(cudaMallocArray(&array, &format, 16, 16));
  CU(cudaMemcpy2DToArray(array, 0, 0, host.data(), 64, 64, 16, cudaMemcpyHostToDevice));
  Store<<<1, 1>>>(device);
  CU(cudaDeviceSynchronize());
}

void Waits(int* device) {
  int* pinned = nullptr;
  CU(cudaMallocHost(&pinned, 1 << 16));
  cudaStream_t stream, free_running;
  cudaEvent_t event;
  CU(cudaStreamCreate(&stream));
  CU(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
  CU(cudaEventCreate(&event));
  CU(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice, stream));
  Store<<<1, 1, 0, stream>>>(device);
  CU(cudaStreamSynchronize(stream));  // nothing to look at
  CU(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
  CU(cudaEventRecord(event, stream));
  CU(cudaStreamSynchronize(free_running));  // in doubt
  CU(cudaEventSynchronize(event));          // the copy
  CU(cudaStreamSynchronize(stream));        // nothing
  CU(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, free_running));
  CU(cudaDeviceSynchronize());  // the copy
  CU(cudaDeviceSynchronize());  // nothing
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CU(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
  CU(cudaStreamEndCapture(stream, &graph));
  CU(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  CU(cudaGraphLaunch(exec, stream));
  CU(cudaStreamSynchronize(stream));  // the graph's copy
  CU(cudaStreamSynchronize(stream));  // nothing
}

void Reuses(char* device) {
  char *pinned = nullptr, *other = nullptr;
  CU(cudaMallocHost(&pinned, 1 << 16));
  CU(cudaMallocHost(&other, 1 << 16));
  for (int i = 0; i < 1 << 16; ++i) pinned[i] = static_cast<char>(i * 7 + i / 256);
  const auto in = [&](const char* from, std::size_t bytes) {
    CU(cudaMemcpyAsync(device, from, bytes, cudaMemcpyHostToDevice));
  };
  in(pinned, 4096);                                                                       // work 1
  in(pinned, 4096);                                                                       // 2: the same bytes
  in(pinned + 4096, 4096);                                                                // 3
  CU(cudaMemcpyAsync(pinned + 2048, device, 4096, cudaMemcpyDeviceToHost));               // 4: behind 1, 2 and 3
  CU(cudaMemcpy2DAsync(device, 64, pinned + 4096, 128, 64, 10, cudaMemcpyHostToDevice));  // 5: rows, behind 4
  in(other, 4096);                                                                        // 6
  CU(cudaDeviceSynchronize());
  in(pinned, 8192);  // 7: behind all but 6
  std::vector<char> pageable(4096);
  CU(cudaMemcpy(pageable.data(), device, 4096, cudaMemcpyDeviceToHost));  // 8
  CU(cudaMemcpy(pageable.data(), device, 4096, cudaMemcpyDeviceToHost));  // 9: pageable memory is not followed
  CU(cudaFreeHost(pinned));
  CU(cudaHostRegister(pageable.data(), 4096, 0));
  in(pageable.data(), 4096);  // 10
  CU(cudaDeviceSynchronize());
  CU(cudaHostUnregister(pageable.data()));
  CU(cudaHostRegister(pageable.data(), 4096, 0));
  pageable[0] = 77;
  in(pageable.data(), 4096);  // 11: other memory, where 10 was
  pageable[0] = 78;
  in(pageable.data(), 4096);  // 12: behind 11
  CU(cudaDeviceSynchronize());
}

void Launch(int* p) {
  Store<<<1, 1>>>(p);
  CU(cudaDeviceSynchronize());
}

int main(int count, char** arguments) {
  int *device = nullptr, *pinned = nullptr, *shared = nullptr;
  CU(cudaMalloc(&device, 1 << 16));
  const std::string part = count > 1 ? arguments[1] : "";
  if (part == "copies") Copies(device);
  if (part == "waits") Waits(device);
  if (part == "reuses") Reuses(reinterpret_cast<char*>(device));
  if (part == "staging" || part == "parameter" || part == "asked") CU(cudaMallocHost(&pinned, 4));
  if (part == "staging") {
    CU(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice));
    Launch(device);
  }
  if (part == "parameter") Launch(pinned);
  if (part == "asked") {
    CU(cudaHostGetDevicePointer(&shared, pinned, 0));
    Launch(device);
  }
  if (part == "managed") {
    CU(cudaMallocManaged(&shared, 4));
    Launch(device);
  }
  return 0;
}
