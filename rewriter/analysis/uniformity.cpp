#include "rewriter/analysis/uniformity.h"

#include <algorithm>

#include "rewriter/analysis/dominators.h"
#include "rewriter/ptx/defuse.h"
#include "rewriter/ptx/special.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::analysis {

using ptx::Instruction;
using ptx::Special;
using ptx::Trait;

namespace {

bool IsUniformSpecial(std::string_view text) {
  const auto special = ptx::SpecialFromText(text);
  if (!special) return false;
  switch (special->special) {
    case Special::kCtaid:
    case Special::kNctaid:
    case Special::kNtid:
    case Special::kGridid:
    case Special::kClusterid:
    case Special::kNclusterid:
    case Special::kClusterCtaid:
    case Special::kClusterNctaid:
    case Special::kClusterCtarank:
    case Special::kClusterNctarank:
    case Special::kNwarpid:
    case Special::kNsmid:
    case Special::kSmid:
    case Special::kEnvreg:
    case Special::kTotalSmemSize:
    case Special::kDynamicSmemSize:
    case Special::kWarpSz: return true;
    default: return false;
  }
}

/// Gives different threads different results of the same operands, or one that other threads have a say in.
bool MakesDivergent(const Instruction& instruction, bool is_entry) {
  if (!ptx::IsArithmetic(instruction.info().cls)) {
    const auto space = instruction.space();
    const bool param = is_entry && (space == ptx::StateSpace::kParam || space == ptx::StateSpace::kParamEntry);
    if (!instruction.Has(Trait::kReads) || (!param && space != ptx::StateSpace::kConst)) return true;
  }
  bool divergent = ReadsCarry(instruction) || WritesCarry(instruction);
  for (const ptx::Operand& operand : instruction.operands) {
    VisitOperand(operand, [&](const ptx::Operand& leaf) {
      divergent = divergent || (leaf.kind == ptx::OperandKind::kSpecial && !IsUniformSpecial(leaf.text));
      // .param variables of a body carry arguments and results of calls.
      const bool is_param = leaf.variable != nullptr && leaf.variable->space == ptx::StateSpace::kParam;
      divergent = divergent || leaf.kind == ptx::OperandKind::kName || (is_param && !is_entry);
    });
  }
  return divergent;
}

/// Per block that branches, the blocks that one way leads to in any case and another does not (Ferrante et al., 1987).
std::vector<std::vector<BlockId>> ControlDependence(const Cfg& cfg) {
  const PostDominatorTree post(cfg.graph(), 0, cfg.GuardedLeaves());
  std::vector<std::vector<BlockId>> controls(cfg.blocks().size());
  for (BlockId block = 0; block < cfg.blocks().size(); ++block) {
    if (post.parent(block) == kNoNode) continue;
    for (NodeId at : cfg.graph().successors[block]) {
      for (; at != post.parent(block) && at != post.virtual_exit() && at != kNoNode; at = post.parent(at)) controls[block].push_back(at);
    }
  }
  return controls;
}

}  // namespace

Uniformity::Uniformity(const Cfg& cfg) : cfg_(cfg), divergent_blocks_(cfg.blocks().size(), false), controls_(ControlDependence(cfg)) {
  const auto add = [&](const ptx::Operand& operand) {
    if (operand.variable != nullptr) registers_.Add(*operand.variable, operand.index);
  };
  for (const CfgInstruction& at : cfg.instructions()) {
    VisitDefs(*at.instruction, add);
    VisitUses(*at.instruction, add);
    VisitGuard(*at.instruction, [&](const ptx::Variable& variable, std::uint32_t index) { registers_.Add(variable, index); });
  }
  divergent_.assign(registers_.size(), false);
  while (Propagate()) {
  }
}

bool Uniformity::IsUniform(const ptx::Variable& variable, std::uint32_t index) const {
  const RegisterId id = registers_.Find(variable, index);
  return id != kNoRegister && !divergent_[id];
}

/// One of the registers it reads, the guard's included, is divergent.
bool Uniformity::Reads(const Instruction& instruction) const {
  bool divergent = false;
  VisitUses(instruction, [&](const ptx::Operand& operand) {
    divergent = divergent || operand.variable == nullptr || divergent_[registers_.Find(*operand.variable, operand.index)];
  });
  VisitGuard(instruction, [&](const ptx::Variable& variable, std::uint32_t index) {
    divergent = divergent || divergent_[registers_.Find(variable, index)];
  });
  return divergent;
}

// One round; each makes at least one register or block divergent.
bool Uniformity::Propagate() {
  bool changed = false;
  const bool is_entry = cfg_.function().is_entry;
  const auto spread = [&](BlockId from) {
    std::vector<BlockId> work{from};
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      for (const BlockId controlled : controls_[block]) {
        if (divergent_blocks_[controlled]) continue;
        divergent_blocks_[controlled] = true;
        changed = true;
        work.push_back(controlled);
      }
    }
  };
  for (const CfgInstruction& at : cfg_.instructions()) {
    const bool reads = Reads(*at.instruction);
    const BasicBlock& block = cfg_.blocks()[at.block];
    const bool is_end =
        at.instruction == cfg_.instructions()[block.first + block.count - 1].instruction && block.end != BlockEnd::kFallthrough;
    if (is_end && reads) spread(at.block);
    if (!reads && !divergent_blocks_[at.block] && !MakesDivergent(*at.instruction, is_entry)) continue;
    VisitDefs(*at.instruction, [&](const ptx::Operand& operand) {
      const RegisterId id = operand.variable == nullptr ? kNoRegister : registers_.Find(*operand.variable, operand.index);
      if (id == kNoRegister || divergent_[id]) return;
      divergent_[id] = true;
      changed = true;
    });
  }
  return changed;
}

}  // namespace gridloom::analysis
