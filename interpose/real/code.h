// Which kernels a program has on a real GPU that a broker shares (--connect, --device real), and from which images they
// come: seen as the calls that load modules and find functions pass through to the real driver. Kernels that are found
// in other ways (by the private tables of runtimes before 12, by enumeration, linked by the driver) are not known;
// their launches go whole.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"
#include "interpose/real/kernel.h"

namespace gridloom::api {

/// The calls that RealCode has to see, with what they do.
enum class CodeRole : std::uint8_t { kNone, kLoad, kLoadFile, kUnload, kGetKernel, kKernelFunction, kLibraryModule };

constexpr CodeRole CodeRoleOf(Fn fn) {
  switch (fn) {
    case Fn::cuModuleLoadData:
    case Fn::cuModuleLoadDataEx:
    case Fn::cuModuleLoadFatBinary:
    case Fn::cuLibraryLoadData: return CodeRole::kLoad;
    case Fn::cuModuleLoad:
    case Fn::cuLibraryLoadFromFile: return CodeRole::kLoadFile;
    case Fn::cuModuleUnload:
    case Fn::cuLibraryUnload: return CodeRole::kUnload;
    case Fn::cuModuleGetFunction:
    case Fn::cuLibraryGetKernel: return CodeRole::kGetKernel;
    case Fn::cuKernelGetFunction: return CodeRole::kKernelFunction;
    case Fn::cuLibraryGetModule: return CodeRole::kLibraryModule;
    default: return CodeRole::kNone;
  }
}

/// Never destroyed. All functions may be called from any thread; no lock is held while the real driver is called.
class RealCode {
 public:
  /// The kernel behind what the program launches; null when it is not known. `context`: the number of the current
  /// context.
  std::shared_ptr<RealKernel> Find(cuda::CUfunction function, std::uint64_t context);

  template <Fn F, typename Call, typename... Args>
  cuda::CUresult Run(const Call& call, Args... args) noexcept {
    constexpr CodeRole kRole = CodeRoleOf(F);
    const auto all = std::tie(args...);
    if constexpr (kRole == CodeRole::kUnload) Unload(std::get<0>(all));
    const cuda::CUresult status = call();
    if (status != cuda::CUDA_SUCCESS || kRole == CodeRole::kUnload) return status;
    try {
      if constexpr (kRole == CodeRole::kLoad) Loaded(*std::get<0>(all), RealImage::OfPointer(std::get<1>(all)));
      if constexpr (kRole == CodeRole::kLoadFile) Loaded(*std::get<0>(all), RealImage::OfFile(std::get<1>(all)));
      if constexpr (kRole == CodeRole::kGetKernel) Found(*std::get<0>(all), std::get<1>(all), std::get<2>(all));
      if constexpr (kRole == CodeRole::kKernelFunction) Found(*std::get<0>(all), std::get<1>(all));
      if constexpr (kRole == CodeRole::kLibraryModule) Loaded(*std::get<0>(all), ImageOf(std::get<1>(all)));
    } catch (...) {  // no room to remember it: its launches go whole
    }
    return status;
  }

 private:
  struct Code {
    std::shared_ptr<RealImage> image;
    std::map<std::string, std::shared_ptr<RealKernel>, std::less<>> kernels = {};  ///< that the program has asked for
  };
  struct Function {
    std::shared_ptr<RealKernel> kernel;
    std::uint64_t context = 0;  ///< in which the number means it; 0: in all
  };

  template <typename Handle>
  static const void* KeyOf(Handle handle) {
    return reinterpret_cast<const void*>(handle);
  }
  void Unload(cuda::CUmodule module) noexcept { Forget(KeyOf(module)); }
  void Unload(cuda::CUlibrary library) noexcept { Forget(KeyOf(library)); }
  void Forget(const void* code) noexcept;
  template <typename Handle>
  void Loaded(Handle handle, std::shared_ptr<RealImage> image) {
    Remember(KeyOf(handle), std::move(image));
  }
  void Remember(const void* code, std::shared_ptr<RealImage> image);
  template <typename Handle>
  std::shared_ptr<RealImage> ImageOf(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = codes_.find(KeyOf(handle));
    return found != codes_.end() ? found->second.image : nullptr;
  }
  void Found(cuda::CUfunction function, cuda::CUmodule module, const char* name);
  void Found(cuda::CUkernel kernel, cuda::CUlibrary library, const char* name);
  void Found(cuda::CUfunction function, cuda::CUkernel kernel);
  void Enter(const void* function, const void* code, const KernelHome& home, const char* name, std::uint64_t context);

  std::mutex mutex_;                                     ///< guards what follows
  std::unordered_map<const void*, Code> codes_;          ///< by module or library
  std::unordered_map<const void*, Function> functions_;  ///< by function or kernel
};

/// The number of the current context, unlike its address never used again; 0: there is none, or the driver does not
/// tell.
std::uint64_t CurrentContextId();

}  // namespace gridloom::api
