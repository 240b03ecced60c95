// Barriers without other stacks. Where all that the warps of a CTA wait for is the barrier of the whole CTA, one call
// runs all of them (CtaEntry): each up to its next barrier, in turn, with what it needs behind the barrier in a frame
// of its own. A switch of stacks takes some 20 cycles and all registers; a round of a loop takes neither, and what all
// warps have in common stays in registers.
//
//   before:  entry:  %w = gl.turns.begin()   A(%w)   gl.turn()   B(%w)   gl.turns.end()   ret
//   after:   loop over the warps %w:  A(%w), keep what B needs;  loop over the warps %w:  take it, B(%w);  ret
//
// Where a warp may come to different barriers, or end early, its frame says where it goes on (turn_order.h).
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>

namespace gridloom::exec {

enum class TurnMark : std::uint8_t { kBegin, kTurn, kEnd };

/// A call that TakeTurns replaces. That of kBegin gives the warp that runs.
llvm::CallInst* EmitTurnMark(llvm::IRBuilder<>& b, TurnMark mark);
/// Says of a kTurn that no lane of the warp is elsewhere there.
void MarkWhole(llvm::Instruction& turn);
/// Says of a buffer that nothing in it is needed behind a barrier: the warps share it.
void MarkShared(llvm::AllocaInst& buffer);

/// The most bytes of the frames of a CTA together: they lie on a worker's stack, beside what helpers need.
inline constexpr std::uint64_t kMostTurnFrames = 128u << 10;

/// Replaces the marks, once the values of the warp form are in registers. A CTA has `warps` warps or fewer. The fourth
/// argument of the kernel is the address where the running warp is noted. `in_a_row`: x alone numbers its threads.
/// False: the frames would take more than kMostTurnFrames, and the module is of no use any more.
[[nodiscard]] bool TakeTurns(llvm::Module& module, unsigned warps, bool in_a_row);

}  // namespace gridloom::exec
