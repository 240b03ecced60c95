#include "interpose/real/code.h"

#include <utility>

#include "interpose/real/call.h"

namespace gridloom::api {

using namespace cuda;

std::uint64_t CurrentContextId() {
  std::uint64_t id = 0;
  return Real<Fn::cuCtxGetId>(CUcontext{nullptr}, &id) == CUDA_SUCCESS ? id : 0;
}

void RealCode::Remember(const void* code, std::shared_ptr<RealImage> image) {
  if (image == nullptr) return;
  Code replaced;  // a module of a context that is gone: its number is used again
  const std::lock_guard lock(mutex_);
  Code& here = codes_[code];
  if (here.image == image) return;
  std::swap(here, replaced);
  here.image = std::move(image);
}

bool RealCode::IsForm(CUfunction function) {
  const char* name = nullptr;
  return Real<Fn::cuFuncGetName>(&name, function) == CUDA_SUCCESS && name != nullptr && IsFormName(name);
}

bool RealCode::IsForm(CUkernel kernel) {
  const char* name = nullptr;
  return Real<Fn::cuKernelGetName>(&name, kernel) == CUDA_SUCCESS && name != nullptr && IsFormName(name);
}

/// Before the driver unloads it: nobody finds it any more. Its image, whose bytes the driver may have.
std::shared_ptr<RealImage> RealCode::Forget(const void* code) noexcept {
  Code gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = codes_.find(code);
    if (found == codes_.end()) return nullptr;
    gone = std::move(found->second);
    codes_.erase(found);
    std::erase_if(functions_, [&](const auto& entry) {
      const auto kernel = gone.kernels.find(entry.second.kernel->name());
      return kernel != gone.kernels.end() && kernel->second == entry.second.kernel;
    });
  }
  const std::uint64_t context = CurrentContextId();
  for (const auto& [name, kernel] : gone.kernels) kernel->Unload(context);
  return gone.image;
}

void RealCode::Enter(const void* function, const void* code, const KernelHome& home, const char* name,
                     std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  const auto found = codes_.find(code);
  if (found == codes_.end()) {
    functions_.erase(function);
    return;
  }
  std::shared_ptr<RealKernel>& kernel = found->second.kernels[name];
  if (kernel == nullptr) kernel = std::make_shared<RealKernel>(found->second.image, home, name);
  functions_[function] = {kernel, context};
}

void RealCode::Found(CUfunction function, CUmodule module, const char* name) {
  Enter(KeyOf(function), KeyOf(module), {.module = module}, name, CurrentContextId());
}

void RealCode::Found(CUkernel kernel, CUlibrary library, const char* name) {
  Enter(KeyOf(kernel), KeyOf(library), {.library = library, .kernel = kernel}, name, 0);
}

void RealCode::Found(CUfunction function, CUkernel kernel) {
  const std::uint64_t context = CurrentContextId();
  const std::lock_guard lock(mutex_);
  const auto found = functions_.find(KeyOf(kernel));
  if (found == functions_.end()) functions_.erase(KeyOf(function));
  else if (KeyOf(function) != KeyOf(kernel)) functions_[KeyOf(function)] = {found->second.kernel, context};
}

std::shared_ptr<RealKernel> RealCode::Find(CUfunction function, std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  const auto found = functions_.find(KeyOf(function));
  if (found == functions_.end() || (found->second.context != 0 && found->second.context != context)) return nullptr;
  return found->second.kernel;
}

}  // namespace gridloom::api
