// What changes from one round of a loop to the next, in a function that is not in SSA form: counters, addresses,
// retries of compare-and-swap. A loop is any set of blocks here, so that irreducible ones are no special case.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/registers.h"

namespace gridloom::passes {

/// Which blocks of a function belong to a loop.
using BlockSet = std::vector<bool>;

/// The strongly connected components of the blocks in a set that are loops: more than one block, or one with an edge to
/// itself.
std::vector<BlockSet> LoopsWithin(const analysis::Graph& graph, const BlockSet& blocks);

class LoopRounds {
 public:
  explicit LoopRounds(const analysis::Cfg& cfg);

  const analysis::RegisterMap& registers() const { return registers_; }
  /// Registers that an instruction (its place in Cfg::instructions()) writes and reads, its guard included.
  const std::vector<analysis::RegisterId>& writes(std::uint32_t instruction) const {
    return accesses_[instruction].writes;
  }
  const std::vector<analysis::RegisterId>& reads(std::uint32_t instruction) const {
    return accesses_[instruction].reads;
  }

  /// The block ends with a branch that leaves the loop when a counter reaches a bound, and the counter moves on in
  /// every round: no round through this block is repeated for ever. Counters step by 1, or by something positive
  /// towards an ordered comparison. The bound is the same in every round, or made of what is loaded anew from the same
  /// places: `i < row[v + 1]` is, where the compiler cannot tell that nothing stores there. As long as nobody changes
  /// it, the counter reaches it.
  bool IsCountedExit(const BlockSet& loop, analysis::BlockId block) const;

  /// The value of this register may be the same in every round: it is not derived from anything that the loop carries
  /// on.
  bool MayRepeat(const BlockSet& loop, analysis::RegisterId id) const;

  /// The block ends with the only branch out of the loop, taken when a compare-and-swap found what it was given:
  ///   LOOP: new = f(old);  was = cas [address], old, new;  done = was == old;  old = was;  if (!done) goto LOOP
  /// Whether the loop is repeated only when another thread's swap succeeded in between, and never for want of other
  /// CTAs.
  bool IsSwapRetry(const BlockSet& loop, analysis::BlockId block) const;

 private:
  struct Accesses {
    std::vector<analysis::RegisterId> writes, reads;
  };
  static constexpr std::uint32_t kNone = ~0u;

  const ptx::Instruction& At(std::uint32_t instruction) const { return *cfg_.instructions()[instruction].instruction; }
  analysis::RegisterId IdOf(const ptx::Operand& operand) const;
  /// The only instruction of the loop that writes a register, when it has no guard; else kNone.
  std::uint32_t OnlyWrite(const BlockSet& loop, analysis::RegisterId id) const;
  bool IsWritten(const BlockSet& loop, analysis::RegisterId id) const;
  bool IsInvariant(const BlockSet& loop, const ptx::Operand& operand, int depth = 0) const;
  bool IsBound(const BlockSet& loop, const ptx::Operand& operand, bool ordered) const;
  bool IsPositive(const ptx::Operand& operand, int depth = 0) const;
  bool IsCounter(const BlockSet& loop, analysis::BlockId block, const ptx::Operand& operand, bool ordered) const;
  bool OnEveryRound(const BlockSet& loop, analysis::BlockId through, analysis::BlockId block) const;
  std::uint32_t ExitTest(const BlockSet& loop, analysis::BlockId block) const;
  analysis::RegisterId CopiedFrom(const BlockSet& loop, analysis::RegisterId id) const;

  const analysis::Cfg& cfg_;
  analysis::RegisterMap registers_;
  std::vector<Accesses> accesses_;                      ///< by instruction
  std::vector<std::vector<std::uint32_t>> written_by_;  ///< by register: instructions
};

}  // namespace gridloom::passes
