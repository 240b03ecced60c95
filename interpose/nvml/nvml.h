// libnvidia-ml.so.1: the management library that programs ask which GPUs there are before they use CUDA (XLA will not
// start without it, NCCL and monitors want it). The file is a link to the shim, as libcuda.so.1 is.
//
// Every name in functions.txt is exported as a jump through a slot. The slots are filled at the first call: with our
// answers for the virtual GPU, or, with a real driver, with the functions of its own libnvidia-ml.so.1.
#pragma once

#include <span>

#include "interpose/hooks/answer.h"

namespace gridloom::nvml {

/// nvmlReturn_t.
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kFunctionNotFound = 13,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

/// What is known of the virtual GPU; all other functions answer kNotSupported.
std::span<const hooks::Answer> Answers();

}  // namespace gridloom::nvml
