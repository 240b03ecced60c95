// Stacks of warps and switching between them; the layout of a suspended warp stands in sim/exec/contract/warp_switch.h.
// Everything here happens on one host thread. With GRIDLOOM_PORTABLE_SWITCH Boost.Context does the switching.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/exec/contract/abi.h"

namespace gridloom::exec {

/// A WarpCtx and the stack it runs on. The worker's own context is one too: its stack is the thread's.
struct SwitchableWarp {
  WarpCtx ctx{};
  std::byte* stack_low = nullptr;  ///< lowest usable byte; below lies a guard page
  std::size_t stack_bytes = 0;
  void* sanitizer_stack = nullptr;  ///< AddressSanitizer's fake stack while suspended
  void* sanitizer_fiber = nullptr;  ///< ThreadSanitizer's fiber
};
static_assert(offsetof(SwitchableWarp, ctx) == 0);

inline SwitchableWarp& SwitchableOf(WarpCtx* ctx) { return *reinterpret_cast<SwitchableWarp*>(ctx); }

/// What happens when a warp's entry returns.
enum class OnReturn : std::uint8_t {
  kRuntime,     ///< gl_warp_returned
  kNextInRing,  ///< it leaves the ring for its neighbour; the last one calls gl_warp_returned. Only where
                ///< KnowsRingEnd()
};
bool KnowsRingEnd();

/// The next switch to `warp` runs `entry` from the top of its stack, `offset` bytes (a multiple of 16) below the very
/// top.
void PrepareStart(SwitchableWarp& warp, std::size_t offset, WarpEntry entry, OnReturn on_return = OnReturn::kRuntime);

/// Suspends `from`, which is running, and runs `to`. Returns when somebody switches back to `from`.
void SwitchWarp(SwitchableWarp& from, SwitchableWarp& to);

/// SwitchWarp, but `from` is not resumed any more: it needs PrepareStart before it runs again.
[[noreturn]] void LeaveWarp(SwitchableWarp& from, SwitchableWarp& to);

/// Tells the sanitizers about a worker's own stack (the calling thread's).
void AdoptThreadStack(SwitchableWarp& root);
/// Tells the sanitizers that a stack will be used from its top again, whatever lies on it now.
void ForgetFrames(SwitchableWarp& warp);
/// Gives up what a sanitizer keeps for a stack that goes away.
void ForgetStack(SwitchableWarp& warp);

}  // namespace gridloom::exec

/// Called on the warp's stack when its entry has returned; leaves it with LeaveWarp. Implemented by the scheduler
/// (unit.cpp).
extern "C" [[noreturn]] void gl_warp_returned(gridloom::exec::WarpCtx* warp);
