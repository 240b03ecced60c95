#include "interpose/base/large_stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <new>

#include "interpose/base/thread_end.h"

namespace gridloom::session {
namespace {

constexpr std::size_t kBytes = 1 << 20, kGuardBytes = 64 << 10;

/// At the upper end of its own memory, above the stack.
struct LargeStack {
  ucontext_t caller, callee;
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  void* memory = nullptr;
};

LargeStack* MakeLargeStack() {
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  mprotect(memory, kGuardBytes, PROT_NONE);
  const std::size_t place = (kBytes - sizeof(LargeStack)) / 64 * 64;
  auto* const stack = new (static_cast<std::byte*>(memory) + place) LargeStack;
  stack->memory = memory;
  return stack;
}

void Run() {
  LargeStack& stack = *static_cast<LargeStack*>(t_state.large_stack);
  stack.function(stack.argument);
}  // goes on in `caller`

}  // namespace

void FindStack() {
  t_state.stack_low = 1;  // so far below that no stack is short
  if (syscall(SYS_gettid) == getpid()) return;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) t_state.stack_low = reinterpret_cast<std::uintptr_t>(low);
  pthread_attr_destroy(&attributes);
}

bool CallOnLargeStack(void (*function)(void*), void* argument) {
  if (t_state.large_stack == nullptr) {
    t_state.large_stack = MakeLargeStack();
    if (t_state.large_stack == nullptr) return false;
    WatchThreadEnd();
  }
  LargeStack& stack = *static_cast<LargeStack*>(t_state.large_stack);
  stack.function = function;
  stack.argument = argument;
  if (getcontext(&stack.callee) != 0) return false;
  stack.callee.uc_stack.ss_sp = static_cast<std::byte*>(stack.memory) + kGuardBytes;
  stack.callee.uc_stack.ss_size =
      static_cast<std::size_t>(reinterpret_cast<std::byte*>(&stack) - static_cast<std::byte*>(stack.memory)) -
      kGuardBytes;
  stack.callee.uc_link = &stack.caller;
  makecontext(&stack.callee, &Run, 0);
  return swapcontext(&stack.caller, &stack.callee) == 0;
}

void FreeLargeStack() {
  auto* const stack = static_cast<LargeStack*>(t_state.large_stack);
  t_state.large_stack = nullptr;
  if (stack != nullptr) munmap(stack->memory, kBytes);
}

}  // namespace gridloom::session
