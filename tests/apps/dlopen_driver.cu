// The driver found by dlopen and dlsym, and by the runtime's entry-point query, with versions.
#include <dlfcn.h>

#include "driver.h"

int main() {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  True("dlopen", handle != nullptr);
  if (!handle) return Verdict();
  const auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(handle, "cuInit"));
  const auto count = reinterpret_cast<CUresult (*)(int*)>(dlsym(handle, "cuDeviceGetCount"));
  const auto address =
      reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>(
          dlsym(handle, "cuGetProcAddress_v2"));
  True("symbols", init && count && address);
  True("unknown symbol", dlsym(handle, "cuNoSuchFunction") == nullptr);
  if (!init || !count || !address) return Verdict();
  int devices = 0;
  Result("cuInit", init(0), CUDA_SUCCESS), Result("count", count(&devices), CUDA_SUCCESS);
  True("devices", devices >= 1);
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  Result("cuMemAlloc", address("cuMemAlloc", &function, 12000, 0, &status), CUDA_SUCCESS);
  True("found", function != nullptr && status == CU_GET_PROC_ADDRESS_SUCCESS);
  True("newest form", function == dlsym(handle, "cuMemAlloc_v2"));
  // Who asks for the status is told by it alone.
  Result("too old", address("cuLaunchKernelEx", &function, 11000, 0, &status), CUDA_SUCCESS);
  True("too old status", status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  Result("unknown", address("cuNoSuchFunction", &function, 13000, 0, &status), CUDA_SUCCESS);
  True("unknown status", status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult query;
  CU(cudaGetDriverEntryPointByVersion("cuCtxGetDevice", &entry, 12000, cudaEnableDefault, &query));
  True("by version", entry == dlsym(handle, "cuCtxGetDevice") && query == cudaDriverEntryPointSuccess);
  dlclose(handle);
  return Verdict();
}
