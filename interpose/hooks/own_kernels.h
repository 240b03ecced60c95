// Kernels of our own that stand in for those of a library of the toolkit (interpose/blas, interpose/fft), and what each
// function that the shim answers in such a library's place does: pass the call on when there is a real GPU, let no
// exception out.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>

#include "interpose/api/cuda_types.h"
#include "interpose/hooks/answer.h"
#include "interpose/objects/module.h"

namespace gridloom::hooks {

/// The toolkit's libraries are clients of the runtime, which makes the device's primary context current to a thread
/// that has none, and is initialised by its first call.
cuda::CUresult BindContext();

/// PTX that is loaded when the first of its kernels is started: libraries belong to no context.
class OwnKernels {
 public:
  explicit constexpr OwnKernels(const char* ptx) : ptx_(ptx) {}
  struct Shape {
    unsigned x, y, z, threads;
    unsigned shared = 0;  ///< bytes
  };
  /// Starts a kernel that has one parameter. `host_form`: what the host can do in its place.
  cuda::CUresult Launch(const char* kernel, Shape shape, const void* argument, cuda::CUstream stream,
                        session::Kernel::HostForm host_form = nullptr);

 private:
  cuda::CUresult Library(cuda::CUlibrary* library);

  const char* ptx_;
  std::mutex mutex_;
  cuda::CUlibrary loaded_ = nullptr;
};

/// True when calls go to the library as they are: there is a real GPU.
bool PassOn();

/// The library's own function, which was found by its name when ours took its place.
template <typename Function>
Function* Real(const char* library, Function*, const char* name) {
  return reinterpret_cast<Function*>(LoadedFunction(library, name));
}

/// Calls the library's own function; `missing` is the status when there is none.
template <typename Function, typename... Arguments>
int PassTo(int missing, const char* library, Function* own, const char* name, Arguments... arguments) {
  auto* const real = Real(library, own, name);
  return real == nullptr ? missing : real(arguments...);
}

template <typename Work>
int Guarded(int no_memory, int internal_error, Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return no_memory;
  } catch (...) {
    return internal_error;
  }
}

}  // namespace gridloom::hooks
