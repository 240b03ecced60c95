// Start-up, look-up of functions, names of errors, the profiler's switches.
#include <cstring>

#include "hooks/support.h"
#include "interpose/api/driver_api.h"
#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/base/thread_state.h"
#include "interpose/objects/errors.h"

namespace gridloom::hooks {

CUresult cuInit(Process& process, unsigned flags) {
  GL_CU_REQUIRE(flags == 0);
  return process.Init();
}

CUresult cuDriverGetVersion(Process& process, int* version) {
  GL_CU_REQUIRE(version != nullptr);
  *version = session::DriverVersion();
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(Process& process, CUresult error, const char** text) {
  GL_CU_REQUIRE(text != nullptr);
  *text = session::NameOf(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(Process& process, CUresult error, const char** text) {
  GL_CU_REQUIRE(text != nullptr);
  *text = session::TextOf(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetProcAddress_v2(Process& process, const char* symbol, void** pfn, int version, std::uint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  GL_CU_REQUIRE(symbol != nullptr && pfn != nullptr);
  GL_CU_REQUIRE((flags & ~std::uint64_t{3}) == 0);
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const api::Lookup found = api::Find(symbol, version, per_thread);
  *pfn = found.address;
  Store(status, found.status);
  if (found.address != nullptr) return CUDA_SUCCESS;
  GL_LOG(kDebug, "cuGetProcAddress: no %s for version %d", symbol, version);
  return status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;  // who asks for the status is told by it
}

CUresult cuGetProcAddress(Process& process, const char* symbol, void** pfn, int version, std::uint64_t flags) {
  return cuGetProcAddress_v2(process, symbol, pfn, version, flags, nullptr);
}

CUresult cuThreadExchangeStreamCaptureMode(Process& process, CUstreamCaptureMode* mode) {
  GL_CU_REQUIRE(mode != nullptr && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
  std::swap(*mode, session::t_state.capture_mode);
  return CUDA_SUCCESS;
}

// No profiler is attached, so there is nothing to switch; programs call these unconditionally.
CUresult cuProfilerInitialize(Process& process, const char*, const char*, CUoutput_mode) { return CUDA_SUCCESS; }
CUresult cuProfilerStart(Process& process) { return CUDA_SUCCESS; }
CUresult cuProfilerStop(Process& process) { return CUDA_SUCCESS; }

}  // namespace gridloom::hooks
