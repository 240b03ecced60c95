// What a program's dlsym finds: answers of the shim's first.
#include <algorithm>
#include <array>
#include <string_view>

#include "interpose/blas/answers.h"
#include "interpose/fft/answers.h"
#include "interpose/hooks/answer.h"
#include "interpose/hooks/driver_library.h"
#include "interpose/hooks/jit_link.h"
#include "interpose/hooks/nvrtc.h"
#include "interpose/hooks/ptx_compiler.h"

#if !defined(__x86_64__)
#error "lookup.cpp: say how dlsym goes on to the C library's with the caller's return address"
#endif

namespace gridloom::hooks {
namespace {

/// "__nvJitLinkCreate_13_0", as the toolkit's header calls it, is nvJitLinkCreate of that version.
std::string_view WithoutVersion(std::string_view name) {
  constexpr std::string_view kPrefix = "__nvJitLink";
  if (!name.starts_with(kPrefix)) return name;
  name.remove_prefix(2);
  return name.substr(0, name.find('_'));
}

void* FindAnswer(std::string_view name) {
  static const std::array kTables = {NvrtcAnswers(), JitLinkAnswers(), blas::Answers(), fft::Answers()};
  for (const auto& table : kTables) {
    for (const Answer& answer : table) {
      if (answer.name == name) return answer.function;
    }
  }
  return nullptr;
}

}  // namespace

}  // namespace gridloom::hooks

extern "C" {

/// The C library's dlsym, for the jump below; set by every call of gl_answer_of.
__attribute__((visibility("hidden"))) void* (*gl_next_dlsym)(void*, const char*) = nullptr;

/// What the shim answers for `name`, if the library asked has such a function; null: ask the C library.
__attribute__((visibility("hidden"), used)) void* gl_answer_of(void* handle, const char* name) {
  gl_next_dlsym = gridloom::hooks::RealDlsym();
  constexpr std::string_view kPrefixes[] = {"nv", "__nv", "cublas", "cufft"};
  const std::string_view asked = name == nullptr ? "" : name;
  if (asked.starts_with("cu") || asked.starts_with("nvml")) {
    if (void* const function = gridloom::hooks::HiddenDriverFunction(handle, name)) return function;
  }
  if (std::ranges::none_of(kPrefixes, [&](std::string_view prefix) { return asked.starts_with(prefix); }))
    return nullptr;
  if (asked.starts_with("nvPTXCompiler")) {
    const void* const real = gl_next_dlsym(handle, name);
    return real != nullptr ? gridloom::hooks::PtxCompilerAnswer(asked, real) : nullptr;
  }
  void* const answer = gridloom::hooks::FindAnswer(gridloom::hooks::WithoutVersion(name));
  return answer != nullptr && gl_next_dlsym(handle, name) != nullptr ? answer : nullptr;
}

// Sanitizers look up what they intercept before any instrumented code may run: in their builds dlsym is the C
// library's.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
/// The C library looks RTLD_NEXT and RTLD_DEFAULT up from where it is called: it must see our caller's return address,
/// so this function leaves by a jump.
__attribute__((visibility("default"), naked)) void* dlsym(void*, const char*) noexcept {
  asm("push %rdi\n"
      "push %rsi\n"
      "sub $8, %rsp\n"  // calls need the stack at a multiple of 16
      "call gl_answer_of\n"
      "add $8, %rsp\n"
      "pop %rsi\n"
      "pop %rdi\n"
      "test %rax, %rax\n"
      "jne 1f\n"
      "jmp *gl_next_dlsym(%rip)\n"
      "1: ret\n");
}
#endif

}  // extern "C"
