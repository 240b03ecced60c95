#include "interpose/hooks/own_kernels.h"

#include "api_exports.h"
#include "interpose/objects/process.h"
#include "interpose/real/driver.h"

namespace gridloom::hooks {

CUresult BindContext() {
  CUcontext context = nullptr;
  CUresult result = ::cuCtxGetCurrent(&context);
  if (result == CUDA_ERROR_NOT_INITIALIZED) {  // the process' first call of all
    if (result = ::cuInit(0); result == CUDA_SUCCESS) result = ::cuCtxGetCurrent(&context);
  }
  if (result != CUDA_SUCCESS || context != nullptr) return result;
  if (result = ::cuDevicePrimaryCtxRetain(&context, 0); result != CUDA_SUCCESS) return result;
  return ::cuCtxSetCurrent(context);
}

CUresult OwnKernels::Library(CUlibrary* library) {
  if (const CUresult result = BindContext(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  if (loaded_ == nullptr) {
    if (const CUresult result = ::cuLibraryLoadData(&loaded_, ptx_, nullptr, nullptr, 0, nullptr, nullptr, 0);
        result != CUDA_SUCCESS)
      return result;
  }
  *library = loaded_;
  return CUDA_SUCCESS;
}

CUresult OwnKernels::Launch(const char* name, Shape shape, const void* argument, CUstream stream,
                            session::Kernel::HostForm host_form) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (const CUresult result = Library(&library); result != CUDA_SUCCESS) return result;
  if (const CUresult result = ::cuLibraryGetKernel(&kernel, library, name); result != CUDA_SUCCESS) return result;
  if (host_form != nullptr) {
    if (const auto known = session::Process::Get().handles.kernels.Find(kernel)) known->host_form = host_form;
  }
  void* parameters[] = {const_cast<void*>(argument)};
  return ::cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), shape.x, shape.y, shape.z, shape.threads, 1, 1,
                          shape.shared, stream, parameters, nullptr);
}

bool PassOn() { return api::CurrentMode() == api::Mode::kReal; }

}  // namespace gridloom::hooks
