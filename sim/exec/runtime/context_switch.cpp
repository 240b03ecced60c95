#include "sim/exec/runtime/context_switch.h"

#include <pthread.h>

#include "sim/exec/contract/warp_switch.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(GRIDLOOM_PORTABLE_SWITCH) || !defined(__x86_64__)
#define GL_BOOST_SWITCH 1
#include <boost/context/detail/fcontext.hpp>
#else
#define GL_BOOST_SWITCH 0
#endif

// ThreadSanitizer notes each call on the stack of the fiber that runs: what changes fibers is no call of its own.
#define GL_NO_CALL __attribute__((always_inline, no_sanitize("thread"))) inline

namespace gridloom::exec {
namespace {

GL_NO_CALL void BeforeSwitch(SwitchableWarp& from, SwitchableWarp& to, bool leaving) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(leaving ? nullptr : &from.sanitizer_stack, to.stack_low, to.stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  if (!to.sanitizer_fiber) to.sanitizer_fiber = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(to.sanitizer_fiber, 0);
#endif
}

GL_NO_CALL void AfterSwitch(SwitchableWarp& here) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(here.sanitizer_stack, nullptr, nullptr);
  here.sanitizer_stack = nullptr;
#endif
}

}  // namespace
}  // namespace gridloom::exec

using gridloom::exec::SwitchableOf;
using gridloom::exec::WarpCtx;
using gridloom::exec::WarpEntry;

/// First C++ code on a fresh stack.
extern "C" [[noreturn]] __attribute__((used)) void gl_warp_main(WarpCtx* warp, WarpEntry entry) {
  gridloom::exec::AfterSwitch(SwitchableOf(warp));
  entry(warp);
  gl_warp_returned(warp);
}

#if !GL_BOOST_SWITCH

// void gl_switch_warp(WarpCtx* from, WarpCtx* to): see sim/exec/contract/warp_switch.h for the layout.
// gl_warp_start: where a warp that has not run yet resumes; its entry is on top of its stack. gl_ring_start: the same
// for OnReturn::kNextInRing; whoever is not the last one out jumps to its neighbour without a call: calls that never
// return would make the processor mispredict the returns of all other warps (10 ns each).
asm(R"(
  .text
  .p2align 4
  .type gl_switch_warp, @function
gl_switch_warp:
  .cfi_startproc
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  leaq 1f(%rip), %rax
  pushq %rax
  movq %rsp, 56(%rdi)
  movq 56(%rsi), %rsp
  popq %rax
  jmpq *%rax
1:
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
  .size gl_switch_warp, . - gl_switch_warp

  .p2align 4
  .type gl_warp_start, @function
gl_warp_start:
  .cfi_startproc
  .cfi_undefined rip
  movq %rsi, %rdi
  popq %rsi
  xorl %ebp, %ebp
  call gl_warp_main
  ud2
  .cfi_endproc
  .size gl_warp_start, . - gl_warp_start

  .p2align 4
  .type gl_ring_start, @function
gl_ring_start:
  .cfi_startproc
  .cfi_undefined rip
  movq %rsi, %rdi
  popq %rax
  xorl %ebp, %ebp
  pushq %rdi
  pushq %rdi
  call *%rax
  popq %rdi
  popq %rdi
  movq 64(%rdi), %rsi
  cmpq %rdi, %rsi
  je 1f
  movq 72(%rdi), %rax
  movq %rax, 72(%rsi)
  movq %rsi, 64(%rax)
  movq 56(%rsi), %rsp
  popq %rax
  jmpq *%rax
1:
  call gl_warp_returned
  ud2
  .cfi_endproc
  .size gl_ring_start, . - gl_ring_start
)");
static_assert(offsetof(WarpCtx, saved_sp) == 56 && offsetof(WarpCtx, next) == 64 && offsetof(WarpCtx, prev) == 72);

extern "C" {
__attribute__((visibility("hidden"))) void gl_switch_warp(WarpCtx* from, WarpCtx* to);
__attribute__((visibility("hidden"))) void gl_warp_start();
__attribute__((visibility("hidden"))) void gl_ring_start();
}

namespace gridloom::exec {

bool KnowsRingEnd() { return kInlineRingSwitch; }

void PrepareStart(SwitchableWarp& warp, std::size_t offset, WarpEntry entry, OnReturn on_return) {
  void** const top = reinterpret_cast<void**>(warp.stack_low + warp.stack_bytes - offset);
  top[-1] = reinterpret_cast<void*>(entry);
  top[-2] = reinterpret_cast<void*>(on_return == OnReturn::kNextInRing ? &gl_ring_start : &gl_warp_start);
  warp.ctx.saved_sp = top - 2;
}

__attribute__((no_sanitize("thread"))) void SwitchWarp(SwitchableWarp& from, SwitchableWarp& to) {
  if (&from == &to) return;
  BeforeSwitch(from, to, false);
  gl_switch_warp(&from.ctx, &to.ctx);
  AfterSwitch(from);
}

__attribute__((no_sanitize("thread"))) void LeaveWarp(SwitchableWarp& from, SwitchableWarp& to) {
  BeforeSwitch(from, to, true);
  gl_switch_warp(&from.ctx, &to.ctx);
  __builtin_unreachable();
}

}  // namespace gridloom::exec

#else

namespace gridloom::exec {
namespace {

namespace boost_context = boost::context::detail;

/// Travels with every jump: whose stack was left and who starts.
struct Handover {
  SwitchableWarp* from;
  SwitchableWarp* to;
};

void StartWarp(boost_context::transfer_t transfer) {
  const Handover handover = *static_cast<Handover*>(transfer.data);
  handover.from->ctx.saved_sp = transfer.fctx;
  void** const top = reinterpret_cast<void**>(handover.to->stack_low);  // PrepareStart left the entry at the low end
  gl_warp_main(&handover.to->ctx, reinterpret_cast<WarpEntry>(*top));
}

}  // namespace

bool KnowsRingEnd() { return false; }

void PrepareStart(SwitchableWarp& warp, std::size_t offset, WarpEntry entry, OnReturn) {
  *reinterpret_cast<void**>(warp.stack_low) = reinterpret_cast<void*>(entry);
  std::byte* const top = warp.stack_low + warp.stack_bytes - offset;
  warp.ctx.saved_sp = boost_context::make_fcontext(top, warp.stack_bytes - offset, StartWarp);
}

__attribute__((no_sanitize("thread"))) void SwitchWarp(SwitchableWarp& from, SwitchableWarp& to) {
  if (&from == &to) return;
  BeforeSwitch(from, to, false);
  Handover handover{&from, &to};
  const boost_context::transfer_t back = boost_context::jump_fcontext(to.ctx.saved_sp, &handover);
  static_cast<Handover*>(back.data)->from->ctx.saved_sp = back.fctx;
  AfterSwitch(from);
}

__attribute__((no_sanitize("thread"))) void LeaveWarp(SwitchableWarp& from, SwitchableWarp& to) {
  BeforeSwitch(from, to, true);
  Handover handover{&from, &to};
  boost_context::jump_fcontext(to.ctx.saved_sp, &handover);
  __builtin_unreachable();
}

}  // namespace gridloom::exec

#endif

namespace gridloom::exec {

void AdoptThreadStack(SwitchableWarp& root) {
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
  }
  root.stack_low = static_cast<std::byte*>(low);
  root.stack_bytes = bytes;
#endif
#if defined(__SANITIZE_THREAD__)
  root.sanitizer_fiber = __tsan_get_current_fiber();
#endif
}

void ForgetFrames(SwitchableWarp& warp) {
#if defined(__SANITIZE_ADDRESS__)
  if (warp.stack_low) __asan_unpoison_memory_region(warp.stack_low, warp.stack_bytes);
#endif
}

void ForgetStack(SwitchableWarp& warp) {
#if defined(__SANITIZE_THREAD__)
  if (warp.sanitizer_fiber) __tsan_destroy_fiber(warp.sanitizer_fiber);
  warp.sanitizer_fiber = nullptr;
#endif
  ForgetFrames(warp);
}

}  // namespace gridloom::exec
