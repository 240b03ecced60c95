// Which kernels a program has on a real GPU where they may go in slices (--device real with --connect or --slice), and
// from which images they come: seen as the calls that load modules and find functions pass through to the real driver.
// Kernels that are found in other ways (by the private tables of runtimes before 12, by enumeration, linked by the
// driver) are not known; their launches go whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"
#include "interpose/real/call.h"
#include "interpose/real/kernel.h"

namespace gridloom::api {

/// The calls that RealCode has to see, with what they do.
enum class CodeRole : std::uint8_t {
  kNone,
  kLoad,
  kLoadFile,
  kUnload,
  kGetKernel,
  kKernelFunction,
  kLibraryModule,
  kCount,
  kEnumerate,
};

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
    case Fn::cuModuleGetFunctionCount:
    case Fn::cuLibraryGetKernelCount: return CodeRole::kCount;
    case Fn::cuModuleEnumerateFunctions:
    case Fn::cuLibraryEnumerateKernels: return CodeRole::kEnumerate;
    default: return CodeRole::kNone;
  }
}

/// Never destroyed. All functions may be called from any thread; no lock is held while the real driver is called.
class RealCode {
 public:
  /// The kernel behind what the program launches; null when it is not known. `context`: the number of the current
  /// context.
  std::shared_ptr<RealKernel> Find(cuda::CUfunction function, std::uint64_t context);

  /// `call` makes the call with these arguments, or with others in their place.
  template <Fn F, typename Call, typename... Args>
  cuda::CUresult Run(const Call& call, Args... args) noexcept {
    constexpr CodeRole kRole = CodeRoleOf(F);
    if constexpr (kRole == CodeRole::kLoad || kRole == CodeRole::kLoadFile) return Load<F>(call, args...);
    else if constexpr (kRole == CodeRole::kEnumerate) return Enumerate(call, args...);
    else return Watch<F>(call, args...);
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

  template <Fn F, typename Call, typename... Args>
  cuda::CUresult Watch(const Call& call, Args... args) noexcept {
    constexpr CodeRole kRole = CodeRoleOf(F);
    const auto all = std::tie(args...);
    std::shared_ptr<RealImage> gone;  // the driver may look at its bytes until it has unloaded them
    if constexpr (kRole == CodeRole::kUnload) gone = Forget(KeyOf(std::get<0>(all)));
    const cuda::CUresult status = call(args...);
    if (status != cuda::CUDA_SUCCESS || kRole == CodeRole::kUnload) return status;
    try {
      if constexpr (kRole == CodeRole::kGetKernel) Found(*std::get<0>(all), std::get<1>(all), std::get<2>(all));
      if constexpr (kRole == CodeRole::kKernelFunction) Found(*std::get<0>(all), std::get<1>(all));
      if constexpr (kRole == CodeRole::kLibraryModule) Loaded(*std::get<0>(all), ImageOf(std::get<1>(all)));
      if constexpr (kRole == CodeRole::kCount) *std::get<0>(all) -= FormsIn(std::get<1>(all));
    } catch (...) {  // no room to remember it: its launches go whole
    }
    return status;
  }

  /// The image, or in its place its machine code with sliced forms; the image itself when the driver does not take
  /// that.
  template <Fn F, typename Call, typename Handle, typename Source, typename... Rest>
  cuda::CUresult Load(const Call& call, Handle* handle, Source source, Rest... rest) noexcept {
    std::shared_ptr<RealImage> image;
    try {
      if (WantsMachineForms()) image = RealImageOf(source);
    } catch (...) {
    }
    cuda::CUresult status = cuda::CUDA_ERROR_INVALID_IMAGE;
    if (image != nullptr && image->forms() != nullptr && image->forms()->count != 0) {
      const void* const code = image->forms()->image.data();
      if constexpr (F == Fn::cuModuleLoad || F == Fn::cuModuleLoadFatBinary)
        status = api::Real<Fn::cuModuleLoadData>(handle, code);
      else if constexpr (F == Fn::cuLibraryLoadFromFile)
        status = api::Real<Fn::cuLibraryLoadData>(handle, code, rest...);
      else status = call(handle, code, rest...);
      if (status != cuda::CUDA_SUCCESS) image->DropForms("the driver does not load its sliced form");
    }
    if (status != cuda::CUDA_SUCCESS) status = call(handle, source, rest...);
    if (status != cuda::CUDA_SUCCESS) return status;
    try {
      Loaded(*handle, image != nullptr ? image : RealImageOf(source));
    } catch (...) {  // no room to remember it: its launches go whole
    }
    return status;
  }
  static std::shared_ptr<RealImage> RealImageOf(const void* image) { return RealImage::OfPointer(image); }
  static std::shared_ptr<RealImage> RealImageOf(const char* path) { return RealImage::OfFile(path); }

  /// All but sliced forms.
  template <typename Call, typename Kernel, typename Handle>
  cuda::CUresult Enumerate(const Call& call, Kernel* kernels, unsigned count, Handle handle) noexcept {
    const unsigned forms = FormsIn(handle);
    if (forms == 0 || kernels == nullptr) return call(kernels, count, handle);
    try {
      std::vector<Kernel> all(std::size_t{count} + forms);
      const cuda::CUresult status = call(all.data(), static_cast<unsigned>(all.size()), handle);
      if (status != cuda::CUDA_SUCCESS) return status;
      std::erase_if(all, [](Kernel kernel) { return kernel == Kernel{} || IsForm(kernel); });
      std::copy_n(all.begin(), std::min<std::size_t>(count, all.size()), kernels);
      return status;
    } catch (...) {
      return cuda::CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  static bool IsForm(cuda::CUfunction function);
  static bool IsForm(cuda::CUkernel kernel);
  template <typename Handle>
  unsigned FormsIn(Handle handle) {
    const auto image = ImageOf(handle);
    return image != nullptr && image->forms() != nullptr ? image->forms()->count : 0;
  }

  template <typename Handle>
  static const void* KeyOf(Handle handle) {
    return reinterpret_cast<const void*>(handle);
  }
  std::shared_ptr<RealImage> Forget(const void* code) noexcept;
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
