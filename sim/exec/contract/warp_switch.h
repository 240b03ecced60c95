// How warps of a CTA take turns on one host thread: every warp has its own stack and the warps that can run form a
// ring. A barrier is "go on with the next warp of the ring": when the warp gets control back, all others have arrived
// or ended. Where warps also give way between barriers (compiler/give_way.h) the barrier counts its arrivals, and a
// warp goes on with the next one until all are there.
//
// x86-64. A suspended warp is nothing but its saved stack pointer (WarpCtx::saved_sp); on its stack lie
//
//     saved_sp ->  address to resume at
//                  whatever the code there pops first
//
// To switch from warp A (rdi) to warp B (rsi): push what must survive and the address to resume at, store rsp in A,
// load rsp from B, pop the address and jump there. All other registers are lost, so each side saves what it needs:
// generated code tells LLVM that everything is clobbered and LLVM spills exactly what is live. On resumption rdi is the
// warp that gave up control and rsi the one that got it; a warp that has not started yet resumes at the runtime's
// trampoline, which takes its WarpCtx from rsi and its entry from the stack. The runtime's own switches
// (runtime/context_switch.cpp) use the same layout.
//
// A warp ends by returning from its entry: the trampoline leaves the ring, and the last warp switches back to the
// worker.
//
// Rules for generated code:
//  * the inline switch may be used only in kernels that CompiledKernel calls `simple_barriers`: every wait in them is
//    the full barrier 0, and they never call kBarrier, kBarrierWait, kWarpYield or kNanosleep (a warp that got control
//    for another reason than a barrier would take it for one, unless the kernel `gives_way`);
//  * a function that contains it is `noredzone` and keeps the stack 16-byte aligned;
//  * with kInlineRingSwitch false no kernel has simple barriers: all of them go through Helper::kBarrier.
#pragma once

#include <cstddef>

#include "sim/exec/contract/abi.h"

namespace gridloom::exec {

// GRIDLOOM_PORTABLE_SWITCH selects Boost.Context; sanitizers must be told of every change of stack.
#if defined(__x86_64__) && !defined(GRIDLOOM_PORTABLE_SWITCH) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
inline constexpr bool kInlineRingSwitch = true;
#else
inline constexpr bool kInlineRingSwitch = false;
#endif

static_assert(offsetof(WarpCtx, saved_sp) == 56 && offsetof(WarpCtx, next) == 64,
              "the assembly below knows these offsets");

/// Switches to the next warp of the ring; the operand is the running warp. Local label 1: the text may be duplicated.
inline constexpr char kRingSwitchAsm[] =
    "pushq %rbp\n\t"
    "pushq %rbx\n\t"
    "pushq %rdi\n\t"
    "leaq 1f(%rip), %rax\n\t"
    "pushq %rax\n\t"
    "movq 64(%rdi), %rsi\n\t"
    "movq %rsp, 56(%rdi)\n\t"
    "movq 56(%rsi), %rsp\n\t"
    "popq %rax\n\t"
    "jmpq *%rax\n"
    "1:\n\t"
    "popq %rdi\n\t"
    "popq %rbx\n\t"
    "popq %rbp";

/// For llvm::InlineAsm of type void (ptr), with side effects. rbp and rbx are saved above, because a function may need
/// them as frame and base pointer; rdi is the input and is restored.
inline constexpr char kRingSwitchConstraints[] =
    "{rdi},~{rax},~{rcx},~{rdx},~{rsi},~{r8},~{r9},~{r10},~{r11},~{r12},~{r13},~{r14},~{r15},"
    "~{xmm0},~{xmm1},~{xmm2},~{xmm3},~{xmm4},~{xmm5},~{xmm6},~{xmm7},~{xmm8},~{xmm9},~{xmm10},~{xmm11},~{xmm12},~{"
    "xmm13},"
    "~{xmm14},~{xmm15},~{xmm16},~{xmm17},~{xmm18},~{xmm19},~{xmm20},~{xmm21},~{xmm22},~{xmm23},~{xmm24},~{xmm25},~{"
    "xmm26},"
    "~{xmm27},~{xmm28},~{xmm29},~{xmm30},~{xmm31},~{k0},~{k1},~{k2},~{k3},~{k4},~{k5},~{k6},~{k7},"
    "~{memory},~{dirflag},~{fpsr},~{flags}";

}  // namespace gridloom::exec
