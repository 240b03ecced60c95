// Driver API: contexts, modules from PTX text, globals, launches with parameter arrays and with a packed buffer, JIT
// logs.
#include "driver.h"

int main() {
  DRV(cuInit(0));
  int count = 0, version = 0;
  DRV(cuDeviceGetCount(&count));
  DRV(cuDriverGetVersion(&version));
  True("count", count >= 1), True("version", version >= 12000);
  CUdevice device;
  DRV(cuDeviceGet(&device, 0));
  char name[128];
  DRV(cuDeviceGetName(name, sizeof name, device));
  std::size_t total = 0;
  DRV(cuDeviceTotalMem(&total, device));
  True("name", name[0] != 0 && total > 0);

  CUcontext context, current, second;
  CUctxCreateParams parameters = {};
  DRV(cuCtxCreate(&context, &parameters, 0, device));
  DRV(cuCtxGetCurrent(&current));
  True("current", current == context);
  DRV(cuCtxCreate(&second, &parameters, 0, device));
  DRV(cuCtxPopCurrent(&current));
  True("popped", current == second);
  DRV(cuCtxDestroy(second));

  CUmodule module;
  const std::string ptx = AffinePtx("affine", 3);
  char info[1000] = "", error[1000] = "";
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {info, reinterpret_cast<void*>(sizeof info), error, reinterpret_cast<void*>(sizeof error),
                    reinterpret_cast<void*>(std::size_t{4})};
  DRV(cuModuleLoadDataEx(&module, ptx.c_str(), 5, options, values));
  CUfunction function;
  DRV(cuModuleGetFunction(&function, module, "affine"));
  Result("missing function", cuModuleGetFunction(&function, module, "absent"), CUDA_ERROR_NOT_FOUND);
  DRV(cuModuleGetFunction(&function, module, "affine"));
  CUdeviceptr offset;
  std::size_t bytes = 0;
  DRV(cuModuleGetGlobal(&offset, &bytes, module, "offset"));
  Same("global size", 0, bytes, std::size_t{4});

  const int n = 1000;
  std::vector<int> host(n), back(n);
  for (int i = 0; i < n; ++i) host[i] = i - 100;
  CUdeviceptr in, out;
  DRV(cuMemAlloc(&in, n * 4));
  DRV(cuMemAlloc(&out, n * 4));
  DRV(cuMemcpyHtoD(in, host.data(), n * 4));
  unsigned size = n;
  void* arguments[] = {&out, &in, &size};
  DRV(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  DRV(cuMemcpyDtoH(back.data(), out, n * 4));
  for (int i = 0; i < n; ++i) Same("array", i, back[i], host[i] * 3 + 1);

  const int seven = 7;
  DRV(cuMemcpyHtoD(offset, &seven, 4));
  struct {
    CUdeviceptr out, in;
    unsigned n;
  } packed = {out, in, size};
  std::size_t packed_size = 20;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                   CU_LAUNCH_PARAM_END};
  DRV(cuMemsetD32(out, 0, n));
  DRV(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
  DRV(cuCtxSynchronize());
  DRV(cuMemcpyDtoH(back.data(), out, n * 4));
  for (int i = 0; i < n; ++i) Same("packed", i, back[i], host[i] * 3 + 7);
  int value = 0;
  DRV(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  True("attribute", value >= 128);

  // Invalid PTX: the error, and a log that says where.
  std::string bad = ptx;
  bad.replace(bad.find("mad.lo.u32 %r4"), 10, "mad.xx.u32");
  CUmodule none = nullptr;
  values[1] = reinterpret_cast<void*>(sizeof info);  // the driver wrote the lengths of the logs there
  values[3] = reinterpret_cast<void*>(sizeof error);
  Result("invalid PTX", cuModuleLoadDataEx(&none, bad.c_str(), 5, options, values), CUDA_ERROR_INVALID_PTX);
  True("log filled", std::strlen(error) > 10);
  const CUresult garbage = cuModuleLoadData(&none, "this is not an image");
  True("garbage", garbage == CUDA_ERROR_INVALID_IMAGE || garbage == CUDA_ERROR_INVALID_PTX);
  DRV(cuModuleUnload(module));
  DRV(cuMemFree(in));
  DRV(cuMemFree(out));
  DRV(cuCtxDestroy(context));
  Result("no context", cuMemAlloc(&in, 4), CUDA_ERROR_INVALID_CONTEXT);
  return Verdict();
}
