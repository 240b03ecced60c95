// Kernels, host functions and graphs after main has returned: from exit handlers and static destructors that were
// registered before the first CUDA call. Each of them launches a kernel that has not been compiled yet. The last line
// is written by the last of them.
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

int g_steps = 0;

[[noreturn]] void Fail(const char* what, long got) {
  std::printf("FAIL: %s: %ld\n", what, got);
  std::fflush(stdout);
  _exit(1);
}
void Want(const char* what, long got, long wanted) {
  if (got != wanted) Fail(what, got);
  ++g_steps;
}

/// Large enough to be interpreted first, and different for each number.
template <int kNumber>
__global__ void Work(int* out, int turns) {
  __shared__ int shared[64];
  const int i = threadIdx.x;
  shared[i] = i;
  __syncthreads();
  int sum = 0;
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      sum += shared[(i * (k + 3) + turn) & 63] / (k + kNumber + 1);
      if ((sum & 31) == k) sum ^= shared[(i + k) & 63] * kNumber;
    }
    __syncthreads();
    shared[i] = (shared[i] * 5 + kNumber) & 1023;
    __syncthreads();
  }
  out[i] = kNumber;
  if (sum == 0x7fffffff) out[i] = 0;
}

template <int kNumber>
void LaunchAndRead(const char* what) {
  int* data = nullptr;
  Want(what, cudaMalloc(&data, 64 * sizeof(int)), cudaSuccess);
  Work<kNumber><<<3, 64>>>(data, 50);
  Want(what, cudaGetLastError(), cudaSuccess);
  int host[64];
  Want(what, cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
  for (const int value : host)
    if (value != kNumber) Fail(what, value);
  Want(what, cudaFree(data), cudaSuccess);
}

template <int kNumber>
void Callbacks(const char* what) {
  static std::atomic<int> called;
  called = 0;
  cudaStream_t stream;
  Want(what, cudaStreamCreate(&stream), cudaSuccess);
  Want(what,
       cudaLaunchHostFunc(
           stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &called),
       cudaSuccess);
  Want(what,
       cudaStreamAddCallback(
           stream, [](cudaStream_t, cudaError_t, void* count) { *static_cast<std::atomic<int>*>(count) += 10; },
           &called, 0),
       cudaSuccess);
  int* data = nullptr;
  Want(what, cudaMalloc(&data, 64 * sizeof(int)), cudaSuccess);
  Want(what, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  Work<kNumber><<<1, 64, 0, stream>>>(data, 3);
  cudaGraph_t graph;
  Want(what, cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t exec;
  Want(what, cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  Want(what, cudaGraphLaunch(exec, stream), cudaSuccess);
  Want(what, cudaStreamSynchronize(stream), cudaSuccess);
  Want(what, called, 11);
  int first = 0;
  Want(what, cudaMemcpy(&first, data, sizeof first, cudaMemcpyDeviceToHost), cudaSuccess);
  Want(what, first, kNumber);
  Want(what, cudaStreamDestroy(stream), cudaSuccess);
}

struct Late {
  ~Late() {
    LaunchAndRead<5>("static destructor");
    Callbacks<6>("static destructor's stream");
    std::thread([] { LaunchAndRead<7>("thread of a static destructor"); }).join();
  }
};

/// Destroyed after all else of the program, the CUDA runtime included: only the driver is left then.
struct Last {
  ~Last() {
    if (g_steps == 0) return;  // main has not come to its end
    static const char kPtx[] =
        ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry last(.param .u64 p) {\n.reg .u64 %d;\n"
        "ld.param.u64 %d, [p];\ncvta.to.global.u64 %d, %d;\nst.global.u32 [%d], 77;\nret;\n}\n";
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr data;
    Want("cuInit", cuInit(0), CUDA_SUCCESS);
    Want("cuDeviceGet", cuDeviceGet(&device, 0), CUDA_SUCCESS);
    Want("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    Want("cuCtxSetCurrent", cuCtxSetCurrent(context), CUDA_SUCCESS);
    Want("cuModuleLoadData", cuModuleLoadData(&module, kPtx), CUDA_SUCCESS);
    Want("cuModuleGetFunction", cuModuleGetFunction(&function, module, "last"), CUDA_SUCCESS);
    Want("cuMemAlloc", cuMemAlloc(&data, 4), CUDA_SUCCESS);
    void* parameters[] = {&data};
    Want("cuLaunchKernel", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    int value = 0;
    Want("cuMemcpyDtoH", cuMemcpyDtoH(&value, data, 4), CUDA_SUCCESS);
    Want("the last kernel", value, 77);
    std::printf("PASS: %d checks\n", g_steps);
    std::fflush(stdout);
  }
};
__attribute__((init_priority(101))) Last g_last;

}  // namespace

int main(int argc, char** argv) {
  std::atexit([] {
    LaunchAndRead<3>("exit handler");
    Callbacks<4>("exit handler's stream");
  });
  static const Late late;
  static_cast<void>(late);
  if (argc > 1 && std::strcmp(argv[1], "nothing-before") == 0) return 0;
  LaunchAndRead<1>("main");
  if (argc > 1 && std::strcmp(argv[1], "busy") == 0) {  // compiled and run while the process ends
    int* data = nullptr;
    cudaMalloc(&data, 64 * sizeof(int));
    Work<2><<<64, 64>>>(data, 1000);
  }
  return 0;
}
