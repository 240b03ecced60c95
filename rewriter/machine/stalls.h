// How long code lets results of fixed latency take before it uses them: the sum of the stalls from the instruction that
// writes a register to one that reads it, over the shortest way (docs/machine-code.md#rules-of-control-bits).
#pragma once

#include <cstdint>
#include <functional>

#include "rewriter/machine/flow.h"

namespace gridloom::machine {

/// An instruction without a scoreboard for its results, and one that reads one of them.
struct FixedUse {
  std::uint32_t from = 0, to = 0;
  RegisterSet registers{};
  unsigned cycles = 0;  ///< between the two at least
  bool jumped = false;  ///< a taken branch lies between
};

/// All of them that are at most `most` cycles apart. Ways end at calls, returns and jump tables.
void VisitFixedUses(const FlowGraph& flow, unsigned most, const std::function<void(const FixedUse&)>& visit);

/// The fewest cycles that may lie between the two, for the registers that are used; 0: nothing is known.
unsigned LeastCycles(const Instruction& from, const Instruction& to, const RegisterSet& registers, unsigned sm);

/// An error that names the first use that comes too early.
Status CheckStalls(const FlowGraph& flow, unsigned sm);

/// The yield bit and the operand cache: an error that names the first instruction that says what ptxas never says. A
/// stall of 0, or of 12 and more, comes with a yield bit of 0. What is kept for an operand slot is a register that is
/// neither written nor left behind by a branch before some instruction reads a register by that slot.
Status CheckHints(const FlowGraph& flow);

}  // namespace gridloom::machine
