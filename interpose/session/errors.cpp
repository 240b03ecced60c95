#include "interpose/session/errors.h"

#include "interpose/session/log.h"

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
  }
  return CUDA_ERROR_UNKNOWN;
}

const char* NameOf(CUresult status) {
  switch (status) {
#define GL_RESULT(name, value, text) \
  case name: return #name;
#include "interpose/api/results.def"
#undef GL_RESULT
  }
  return nullptr;
}

const char* TextOf(CUresult status) {
  switch (status) {
#define GL_RESULT(name, value, text) \
  case name: return text;
#include "interpose/api/results.def"
#undef GL_RESULT
  }
  return nullptr;
}

std::string Describe(const exec::LaunchFault& fault) {
  const char* name = NameOf(StatusOf(fault.kind));
  std::string text = Format("kernel %s stopped with %s: %s", fault.kernel.c_str(), name, fault.text.c_str());
  if (fault.kind != exec::FaultKind::kCompile && fault.kind != exec::FaultKind::kOutOfMemory) {
    text += Format(" [CTA (%u,%u,%u), thread (%u,%u,%u)", fault.cta.x, fault.cta.y, fault.cta.z, fault.thread.x,
                   fault.thread.y, fault.thread.z);
    if (fault.ptx_line != 0) text += Format(", PTX line %u", fault.ptx_line);
    if (fault.address != 0) text += Format(", address 0x%llx", static_cast<unsigned long long>(fault.address));
    text += "]";
  }
  return text;
}

}  // namespace gridloom::session
