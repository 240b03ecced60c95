#include "interpose/entry/entry.h"

#include "interpose/base/log.h"
#include "interpose/base/refusals.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/errors.h"
#include "interpose/objects/green_context.h"
#include "interpose/objects/process.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"

namespace gridloom::api {

using namespace cuda;
using session::LogLevel;

namespace {

/// Calls whose errors are answers: the runtime and libraries ask what there is.
bool Asks(Fn fn) {
  switch (fn) {
    case Fn::cuGetProcAddress:
    case Fn::cuGetProcAddress_v2:
    case Fn::cuGetExportTable:
    case Fn::cuPointerGetAttribute:
    case Fn::cuPointerGetAttributes:
    case Fn::cuMemGetAddressRange_v2:
    case Fn::cuCtxGetDevice:
    case Fn::cuModuleGetGlobal_v2:
    case Fn::cuLibraryGetGlobal:
    case Fn::cuLibraryGetManaged:
    case Fn::cuModuleGetFunction:
    case Fn::cuLibraryGetKernel: return true;
    default: return false;
  }
}

}  // namespace

void LookAtCall(const session::Process& process, Fn fn, CUresult status) {
  const char* const known = session::NameOf(status);
  const std::string name = known != nullptr ? known : std::to_string(status);
  session::LogFormat(LogLevel::kTrace, "%s -> %s", RowOf(fn).symbol, name.c_str());
  const bool is_error = status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY && !Asks(fn);
  if (session::MemcheckLog& log = process.observers().memcheck(); is_error && log.reports_calls())
    log.CallFailed(RowOf(fn).symbol, name.c_str());
}

CUresult CheckNeed(const session::Process& process, Need need) {
  const CUresult status = process.init_status();
  if (status != CUDA_SUCCESS) return status;
  if (session::Process::child_of_user()) return CUDA_ERROR_NOT_INITIALIZED;
  if (session::t_state.in_callback) return CUDA_ERROR_NOT_PERMITTED;
  if (need == Need::kInit) return CUDA_SUCCESS;
  const session::Context* const context = session::CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (const session::GreenContext* const green = session::CurrentGreen(); green != nullptr && green->destroyed())
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return context->status();
}

CUresult AnswerUnsupported(Fn fn, const char* why) {
  session::NoteRefused(session::RefusedKind::kCall, RowOf(fn).symbol, why);
  static std::atomic<bool> told[kFunctionCount];
  if (!told[static_cast<std::size_t>(fn)].exchange(true, std::memory_order_relaxed)) {
    session::LogFormat(LogLevel::kWarn, "%s is not supported%s%s; it answers CUDA_ERROR_NOT_SUPPORTED",
                       RowOf(fn).symbol, *why != '\0' ? ": " : "", why);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult AnswerException(Fn fn, const std::exception* error) {
  session::LogFormat(LogLevel::kError, "%s failed inside the shim: %s", RowOf(fn).symbol,
                     error != nullptr ? error->what() : "unknown exception");
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace gridloom::api
