// Which registers hold the same value in all threads of a CTA, or in all lanes of each warp, and which blocks all of
// these execute equally often: divergence analysis over data and control dependence. Conservative: "uniform" is
// certain, the opposite is not.
#pragma once

#include <optional>
#include <vector>

#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/lane_values.h"
#include "rewriter/analysis/registers.h"

namespace gridloom::analysis {

class Uniformity {
 public:
  /// Parameters of a kernel are the same for all threads; those of other functions are taken to differ, and so is
  /// whatever a function returns.
  explicit Uniformity(const Cfg& cfg, Scope scope = Scope::kCta);

  bool IsUniform(const ptx::Variable& variable, std::uint32_t index) const;
  /// Whether no thread goes round the block, or enters it more often, by a branch that another thread takes
  /// differently. Threads that end before it count, too.
  bool IsUniform(BlockId block) const { return !divergent_blocks_[block]; }
  /// An instruction without a guard has a uniform one.
  bool IsGuardUniform(const ptx::Instruction& instruction) const;

 private:
  void FindNumbers();
  std::optional<std::uint64_t> NumberOf(const ptx::Operand& operand) const;
  LaneValue ValueOf(const ptx::Operand& operand) const;
  LaneValue Read(const ptx::Instruction& instruction) const;
  LaneValue Result(const CfgInstruction& at) const;
  bool Propagate();

  const Cfg& cfg_;
  const Scope scope_;
  RegisterMap registers_;
  std::vector<LaneValue> values_;                      ///< by register
  std::vector<std::optional<std::uint64_t>> numbers_;  ///< by register
  std::vector<bool> divergent_blocks_;                 ///< by block
  std::vector<std::vector<BlockId>> controls_;         ///< by block: those whose execution its branch decides
};

}  // namespace gridloom::analysis
