// From what stopped a kernel to what the driver reports.
#pragma once

#include "interpose/api/cuda_types.h"
#include "sim/exec/engine.h"

namespace gridloom::session {

cuda::CUresult StatusOf(exec::FaultKind kind);

/// "CUDA_ERROR_ILLEGAL_ADDRESS" and its text; null for a number that is no status.
const char* NameOf(cuda::CUresult status);
const char* TextOf(cuda::CUresult status);

/// One sentence: which kernel stopped where, and why.
std::string Describe(const exec::LaunchFault& fault);

}  // namespace gridloom::session
