// Context-independent libraries: cuLibraryLoadData, kernels used as functions, globals, enumeration; the runtime's form
// of it.
#include "driver.h"

int main() {
  DRV(cuInit(0));
  CUdevice device;
  CUcontext context;
  DRV(cuDeviceGet(&device, 0));
  const std::string ptx = AffinePtx("affine", 5);
  CUlibrary library;
  DRV(cuLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));  // before any context
  CUkernel kernel;
  DRV(cuLibraryGetKernel(&kernel, library, "affine"));
  unsigned count = 0;
  DRV(cuLibraryGetKernelCount(&count, library));
  Same("count", 0, count, 1u);
  const char* name = nullptr;
  DRV(cuKernelGetName(&name, kernel));
  True("name", name && std::strcmp(name, "affine") == 0);
  DRV(cuDevicePrimaryCtxRetain(&context, device));
  DRV(cuCtxSetCurrent(context));
  const int n = 333;
  std::vector<int> host(n), back(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  Buffer<int> in(host), out(n);
  int *p = out, *q = in;
  unsigned size = n;
  void* arguments[] = {&p, &q, &size};
  DRV(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 3, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  back = out.Read();
  for (int i = 0; i < n; ++i) Same("kernel", i, back[i], i * 5 + 1);
  CUdeviceptr global;
  std::size_t bytes = 0;
  DRV(cuLibraryGetGlobal(&global, &bytes, library, "offset"));
  DRV(cuMemsetD32(global, 1000, 1));
  CUlaunchConfig config = {};
  config.gridDimX = 3, config.gridDimY = config.gridDimZ = 1, config.blockDimX = 128,
  config.blockDimY = config.blockDimZ = 1;
  CUfunction function;
  DRV(cuKernelGetFunction(&function, kernel));
  DRV(cuLaunchKernelEx(&config, function, arguments, nullptr));
  back = out.Read();
  for (int i = 0; i < n; ++i) Same("changed global", i, back[i], i * 5 + 1000);
  std::size_t offset = 9, parameter = 0;
  DRV(cuKernelGetParamInfo(kernel, 2, &offset, &parameter));
  True("parameter", offset == 16 && parameter == 4);
  Result("no such parameter", cuKernelGetParamInfo(kernel, 3, &offset, &parameter), CUDA_ERROR_INVALID_VALUE);
  DRV(cuLibraryUnload(library));

  cudaLibrary_t runtime_library;
  cudaKernel_t runtime_kernel;
  CU(cudaLibraryLoadData(&runtime_library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CU(cudaLibraryGetKernel(&runtime_kernel, runtime_library, "affine"));
  CU(cudaLaunchKernel(reinterpret_cast<const void*>(runtime_kernel), dim3(3), dim3(128), arguments, 0, nullptr));
  CU_LAUNCHED();
  back = out.Read();
  for (int i = 0; i < n; ++i) Same("runtime", i, back[i], i * 5 + 1);
  CU(cudaLibraryUnload(runtime_library));
  return Verdict();
}
