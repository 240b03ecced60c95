// Calls of the driver by threads with small stacks. Compiling a kernel and running it take more room than such a thread
// has: the call goes on, on the same thread, on a stack of the shim's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "interpose/base/thread_state.h"

namespace gridloom::session {

/// What a call may need of its thread's stack, in bytes.
inline constexpr std::size_t kStackOfACall = 192 << 10;

/// Looks where the calling thread's stack begins. The main thread's grows; it counts as large.
void FindStack();

/// Whether the calling thread has less left than a call may need.
inline bool StackIsShort() {
  if (t_state.stack_low == 0) [[unlikely]]
    FindStack();
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - t_state.stack_low < kStackOfACall;
}

/// Calls `function(argument)` on the thread's large stack, which is made for the first such call and goes with the
/// thread. False, and nothing is called, when there is no memory for it. The function throws nothing.
bool CallOnLargeStack(void (*function)(void*), void* argument);

template <typename Function>
bool OnLargeStack(Function&& function) {
  return CallOnLargeStack([](void* f) { (*static_cast<std::remove_reference_t<Function>*>(f))(); }, &function);
}

/// Gives the calling thread's large stack back, if it has one.
void FreeLargeStack();

}  // namespace gridloom::session
