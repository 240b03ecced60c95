// cufftResult, by the numbers of cufft.h.
#pragma once

namespace gridloom::fft {

enum Status : int {
  kSuccess = 0,
  kInvalidPlan = 1,
  kAllocFailed = 2,
  kInvalidType = 3,
  kInvalidValue = 4,
  kInternalError = 5,
  kExecFailed = 6,
  kSetupFailed = 7,
  kInvalidSize = 8,
  kNoWorkspace = 13,
  kNotImplemented = 14,
  kNotSupported = 16,
};

using Index = long long;

}  // namespace gridloom::fft
