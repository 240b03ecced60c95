#include "interpose/base/host_stack.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <cstdint>
#include <string_view>

#include "rewriter/support/demangle.h"
#include "sim/exec/memcheck.h"

namespace gridloom::session {
namespace {

constexpr int kMostFrames = 32;

/// The function of a return address: the call stands before the address.
Dl_info InfoOf(const void* frame) {
  Dl_info info{};
  if (dladdr(static_cast<const char*>(frame) - 1, &info) == 0) info = {};
  return info;
}

bool IsOurs(const void* frame) {
  static const void* const own = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(&InfoOf), &info);
    return static_cast<const void*>(info.dli_fbase);
  }();
  return InfoOf(frame).dli_fbase == own;
}

std::string LineOf(const void* frame) {
  const Dl_info info = InfoOf(frame);
  if (info.dli_fname == nullptr) return exec::HexAddress(reinterpret_cast<std::uintptr_t>(frame));
  std::string_view file = info.dli_fname;
  file.remove_prefix(file.rfind('/') + 1);
  const auto offset = reinterpret_cast<std::uintptr_t>(frame) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  const std::string place = std::string(file) + "+" + exec::HexAddress(offset);
  return info.dli_sname == nullptr ? place : DemangledName(info.dli_sname) + " in " + place;
}

}  // namespace

std::shared_ptr<const HostStack> HostStack::Here() {
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  auto stack = std::make_shared<HostStack>();
  for (int i = 0; i < count; ++i)
    if (!IsOurs(frames[i])) stack->frames_.push_back(frames[i]);
  return stack;
}

std::vector<std::string> HostStack::Lines() const {
  std::vector<std::string> lines;
  for (const void* frame : frames_) lines.push_back(LineOf(frame));
  return lines;
}

std::string HostStack::Text(const char* what, const HostStackPtr& stack) {
  if (stack == nullptr) return {};
  std::string text = std::string("\n  ") + what + " at";
  for (const std::string& line : stack->Lines()) text += "\n    " + line;
  return text;
}

}  // namespace gridloom::session
