// Calls of the real driver by those who stand in front of it.
#pragma once

#include <cstddef>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"

namespace gridloom::api {

/// Addresses in the real driver, [function][twin]; filled before calls go there (real/driver.h).
extern void* g_real[kFunctionCount][2];

/// A function of the real driver, its per-thread twin where there is one and `twin` asks for it; NOT_SUPPORTED where
/// the driver lacks it.
template <Fn F, typename... Args>
cuda::CUresult RealTwin(bool twin, Args... args) {
  void* const* const both = g_real[static_cast<std::size_t>(F)];
  void* const function = twin && both[1] != nullptr ? both[1] : both[0];
  return function != nullptr ? reinterpret_cast<cuda::CUresult (*)(Args...)>(function)(args...)
                             : cuda::CUDA_ERROR_NOT_SUPPORTED;
}
template <Fn F, typename... Args>
cuda::CUresult Real(Args... args) {
  return RealTwin<F>(false, args...);
}

/// While it lives, what the thread asks of the driver disturbs no capture of the program's.
class OutsideCaptures {
 public:
  OutsideCaptures() { exchanged_ = Real<Fn::cuThreadExchangeStreamCaptureMode>(&mode_) == cuda::CUDA_SUCCESS; }
  ~OutsideCaptures() {
    if (exchanged_) static_cast<void>(Real<Fn::cuThreadExchangeStreamCaptureMode>(&mode_));
  }
  OutsideCaptures(const OutsideCaptures&) = delete;

 private:
  cuda::CUstreamCaptureMode mode_ = cuda::CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

}  // namespace gridloom::api
