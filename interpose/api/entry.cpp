#include "interpose/api/entry.h"

#include "interpose/session/errors.h"
#include "interpose/session/log.h"
#include "interpose/session/process.h"

namespace gridloom::api {

using namespace cuda;
using session::LogLevel;

std::atomic<bool> g_trace{false};

void Trace(Fn fn, CUresult status) {
  const char* const name = session::NameOf(status);
  session::LogFormat(LogLevel::kTrace, "%s -> %s", RowOf(fn).symbol, name != nullptr ? name : std::to_string(status).c_str());
}

CUresult CheckNeed(Need need) {
  const CUresult status = session::Process::Get().init_status();
  if (status != CUDA_SUCCESS) return status;
  if (session::Process::child_of_user()) return CUDA_ERROR_NOT_INITIALIZED;
  if (session::t_state.in_callback) return CUDA_ERROR_NOT_PERMITTED;
  if (need == Need::kInit) return CUDA_SUCCESS;
  const session::Context* const context = session::CurrentContext();
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : context->status();
}

CUresult AnswerUnsupported(Fn fn, const char* why) {
  static std::atomic<bool> told[kFunctionCount];
  if (!told[static_cast<std::size_t>(fn)].exchange(true, std::memory_order_relaxed)) {
    session::LogFormat(LogLevel::kWarn, "%s is not supported%s%s; it answers CUDA_ERROR_NOT_SUPPORTED", RowOf(fn).symbol,
                       *why != '\0' ? ": " : "", why);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult AnswerException(Fn fn, const std::exception* error) {
  session::LogFormat(LogLevel::kError, "%s failed inside the shim: %s", RowOf(fn).symbol,
                     error != nullptr ? error->what() : "unknown exception");
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace gridloom::api
