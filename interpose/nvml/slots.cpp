// Where the exported functions jump to.
#include <dlfcn.h>

#include <iterator>
#include <mutex>
#include <utility>

#include "interpose/base/log.h"
#include "interpose/nvml/nvml.h"
#include "interpose/real/driver.h"

#if !defined(__x86_64__)
#error "slots.cpp: say how a function jumps through a table"
#endif

namespace gridloom::nvml {
namespace {

constexpr const char* kNames[] = {
#define GL_NVML(index, name) #name,
#include "nvml_functions.inc"
#undef GL_NVML
};
constexpr std::size_t kCount = std::size(kNames);

/// What the virtual GPU lacks. Programs ask for much that they can do without, so a name is told only to who wants to
/// know.
template <std::size_t kFunction>
int NotSupported() {
  static std::once_flag told;
  std::call_once(told, [] { GL_LOG(kInfo, "%s: not supported by the virtual GPU", kNames[kFunction]); });
  return kNotSupported;
}
template <std::size_t... kFunctions>
void* Refusal(std::size_t function, std::index_sequence<kFunctions...>) {
  static void* const refusals[] = {reinterpret_cast<void*>(&NotSupported<kFunctions>)...};
  return refusals[function];
}
int FunctionNotFound() { return kFunctionNotFound; }

void* OurAnswer(std::size_t function) {
  for (const hooks::Answer& answer : Answers()) {
    if (answer.name == kNames[function]) return answer.function;
  }
  return Refusal(function, std::make_index_sequence<kCount>());
}

}  // namespace
}  // namespace gridloom::nvml

extern "C" {

__attribute__((visibility("hidden"))) void* gl_nvml_slots[gridloom::nvml::kCount] = {};
__attribute__((visibility("hidden"))) unsigned char gl_nvml_ready = 0;

/// Fills the slots, once. Threads that come early wait here.
__attribute__((visibility("hidden"), used)) void gl_nvml_prepare() {
  using namespace gridloom;
  static std::once_flag once;
  std::call_once(once, [] {
    void* const real = api::CurrentMode() == api::Mode::kReal ? api::OpenRealLibrary("libnvidia-ml.so.1") : nullptr;
    for (std::size_t i = 0; i < nvml::kCount; ++i) {
      void* function = nullptr;
      if (api::CurrentMode() != api::Mode::kReal) function = nvml::OurAnswer(i);
      else if (real != nullptr) function = dlsym(real, nvml::kNames[i]);
      gl_nvml_slots[i] = function != nullptr ? function : reinterpret_cast<void*>(&nvml::FunctionNotFound);
    }
    __atomic_store_n(&gl_nvml_ready, 1, __ATOMIC_RELEASE);
  });
}

/// Called by an exported function before its arguments may be touched: they are in registers (no function of NVML takes
/// more than six, or a floating-point one).
__attribute__((visibility("hidden"), used, naked)) void gl_nvml_enter() {
  asm("push %rdi\n"
      "push %rsi\n"
      "push %rdx\n"
      "push %rcx\n"
      "push %r8\n"
      "push %r9\n"  // with two return addresses: a multiple of 16
      "call gl_nvml_prepare\n"
      "pop %r9\n"
      "pop %r8\n"
      "pop %rcx\n"
      "pop %rdx\n"
      "pop %rsi\n"
      "pop %rdi\n"
      "ret\n");
}

#define GL_NVML(index, name)                                  \
  __attribute__((visibility("default"), naked)) void name() { \
    asm("cmpb $0, gl_nvml_ready(%rip)\n"                      \
        "jne 1f\n"                                            \
        "call gl_nvml_enter\n"                                \
        "1: jmp *gl_nvml_slots+8*" #index "(%rip)\n");        \
  }
#include "nvml_functions.inc"
#undef GL_NVML

}  // extern "C"
