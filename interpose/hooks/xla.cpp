// XLA (JAX, TensorFlow) tries hundreds of forms of each matrix product as Triton's kernels and keeps the fastest.
// Without a GPU that is minutes of compiling code that is thrown away: a small network's first step takes 6 s without
// it and over 8 minutes with it. So Python programs on a virtual GPU get the option that leaves Triton's products out,
// unless they set it, or are told not to.
#include "interpose/hooks/xla.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace gridloom::hooks {
namespace {

constexpr const char* kFlags = "--xla_gpu_enable_triton_gemm=false";

bool IsPython() {
  const std::string_view name = program_invocation_short_name;
  return name.starts_with("python") || name.starts_with("pypy");
}

/// Whether a real GPU is used, as far as that can be known before the first call: one was asked for, or there is one
/// that may be taken.
bool IsRealGpu() {
  const char* const device = getenv("GRIDLOOM_DEVICE");
  if (device != nullptr && *device != '\0') return std::string_view(device) == "real";
  return syscall(SYS_access, "/dev/nvidiactl", F_OK) == 0;  // `access` tells of the virtual one (device_files.cpp)
}

/// Words that blanks separate, as XLA reads its options.
std::vector<std::string_view> Words(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::string_view NameOf(std::string_view option) { return option.substr(0, option.find('=')); }

}  // namespace

void ShortenAutotuning() {
  if (!IsPython() || IsRealGpu()) return;
  const char* const wanted = getenv("GRIDLOOM_XLA_FLAGS");  // the settings are read later
  const std::string flags = wanted != nullptr ? wanted : kFlags;
  if (flags == "off" || flags.empty()) return;
  const char* const set = getenv("XLA_FLAGS");
  const std::string before = set != nullptr ? set : "";
  if (before.starts_with("/")) return;  // a file of options
  const std::vector<std::string_view> own = Words(before);
  std::string all = before;
  for (const std::string_view option : Words(flags)) {
    if (std::ranges::any_of(own, [&](std::string_view other) { return NameOf(other) == NameOf(option); })) continue;
    if (!all.empty()) all += ' ';
    all += option;
  }
  if (all != before) setenv("XLA_FLAGS", all.c_str(), 1);
}

}  // namespace gridloom::hooks
