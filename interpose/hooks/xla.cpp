// XLA (JAX, TensorFlow) tries hundreds of forms of each matrix product as Triton's kernels and keeps the fastest. Without a GPU that is
// minutes of compiling code that is thrown away: a small network's first step takes 6 s without it and over 8 minutes with it. So Python
// programs on a virtual GPU get the option that leaves Triton's products out, unless they set it, or are told not to.
#include "interpose/hooks/xla.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace gridloom::hooks {
namespace {

constexpr const char* kFlags = "--xla_gpu_enable_triton_gemm=false";

bool IsPython() {
  const std::string_view name = program_invocation_short_name;
  return name.starts_with("python") || name.starts_with("pypy");
}

/// As far as it can be known before the first call: asked for, or there is one that may be taken.
bool IsRealGpu() {
  const char* const device = getenv("GRIDLOOM_DEVICE");
  if (device != nullptr && *device != '\0') return std::string_view(device) == "real";
  return syscall(SYS_access, "/dev/nvidiactl", F_OK) == 0;  // `access` tells of the virtual one (device_files.cpp)
}

}  // namespace

void ShortenAutotuning() {
  if (!IsPython() || IsRealGpu()) return;
  const char* const wanted = getenv("GRIDLOOM_XLA_FLAGS");  // the settings are read later
  const std::string flags = wanted != nullptr ? wanted : kFlags;
  if (flags == "off" || flags.empty()) return;
  const char* const set = getenv("XLA_FLAGS");
  const std::string before = set != nullptr ? set : "";
  if (before.starts_with("/")) return;  // a file of options
  if (before.find(flags.substr(0, flags.find('='))) != std::string::npos) return;
  setenv("XLA_FLAGS", (before.empty() ? flags : before + " " + flags).c_str(), 1);
}

}  // namespace gridloom::hooks
