#include "interpose/objects/errors.h"

#include "interpose/base/log.h"

namespace gridloom::session {

using namespace cuda;

CUresult StatusOf(exec::FaultKind kind) {
  using exec::FaultKind;
  switch (kind) {
    case FaultKind::kNone: return CUDA_SUCCESS;
    case FaultKind::kIllegalAddress: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::kMisalignedAddress: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::kIllegalInstruction: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case FaultKind::kTrap: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::kAssert: return CUDA_ERROR_ASSERT;
    case FaultKind::kStackOverflow: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::kInvalidPc: return CUDA_ERROR_INVALID_PC;
    case FaultKind::kDeadlock: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::kCompile: return CUDA_ERROR_NOT_SUPPORTED;
    case FaultKind::kOutOfMemory: return CUDA_ERROR_OUT_OF_MEMORY;
    case FaultKind::kStopped: return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_UNKNOWN;
}

const char* NameOf(CUresult status) {
  switch (status) {
#define GL_RESULT(name, value, text) \
  case name:                         \
    return #name;
#include "interpose/api/results.def"
#undef GL_RESULT
  }
  return nullptr;
}

const char* TextOf(CUresult status) {
  switch (status) {
#define GL_RESULT(name, value, text) \
  case name:                         \
    return text;
#include "interpose/api/results.def"
#undef GL_RESULT
  }
  return nullptr;
}

std::string Describe(const exec::LaunchFault& fault) {
  // The text says which kernel stopped where.
  return Format("%s: %s", NameOf(StatusOf(fault.kind)), fault.text.c_str());
}

}  // namespace gridloom::session
