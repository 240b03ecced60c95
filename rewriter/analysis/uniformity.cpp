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

/// Gives different threads different results of the same operands, or one that other threads have a say in.
bool MakesDivergent(const Instruction& instruction, bool is_entry, Scope scope) {
  if (!ptx::IsArithmetic(instruction.info().cls)) {
    const auto space = instruction.space();
    const bool param = is_entry && (space == ptx::StateSpace::kParam || space == ptx::StateSpace::kParamEntry);
    if (!instruction.Has(Trait::kReads) || (!param && space != ptx::StateSpace::kConst)) return true;
  }
  bool divergent = ReadsCarry(instruction) || WritesCarry(instruction);
  for (const ptx::Operand& operand : instruction.operands) {
    VisitOperand(operand, [&](const ptx::Operand& leaf) {
      divergent = divergent ||
                  (leaf.kind == ptx::OperandKind::kSpecial && ValueOfSpecial(leaf.text, scope) == LaneValue::kDiffers);
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
      for (; at != post.parent(block) && at != post.virtual_exit() && at != kNoNode; at = post.parent(at))
        controls[block].push_back(at);
    }
  }
  return controls;
}

}  // namespace

Uniformity::Uniformity(const Cfg& cfg, Scope scope)
    : cfg_(cfg), scope_(scope), divergent_blocks_(cfg.blocks().size(), false), controls_(ControlDependence(cfg)) {
  const auto add = [&](const ptx::Operand& operand) {
    if (operand.variable != nullptr) registers_.Add(*operand.variable, operand.index);
  };
  for (const CfgInstruction& at : cfg.instructions()) {
    VisitDefs(*at.instruction, add);
    VisitUses(*at.instruction, add);
    VisitGuard(*at.instruction,
               [&](const ptx::Variable& variable, std::uint32_t index) { registers_.Add(variable, index); });
  }
  values_.assign(registers_.size(), LaneValue::kUnset);
  FindNumbers();
  while (Propagate()) {
  }
}

bool Uniformity::IsUniform(const ptx::Variable& variable, std::uint32_t index) const {
  const RegisterId id = registers_.Find(variable, index);
  return id != kNoRegister && IsSame(values_[id]);
}

/// Registers that one instruction gives a value, and that is a literal: masks and lengths of exchanges.
void Uniformity::FindNumbers() {
  std::vector<std::uint32_t> writes(registers_.size(), 0);
  numbers_.assign(registers_.size(), std::nullopt);
  for (const CfgInstruction& at : cfg_.instructions()) {
    const Instruction& instruction = *at.instruction;
    const bool moves = instruction.opcode == ptx::Opcode::kMov && instruction.operands.size() == 2 &&
                       instruction.operands[0].kind == ptx::OperandKind::kRegister &&
                       instruction.operands[0].element == 0 && instruction.operands[1].kind == ptx::OperandKind::kInt &&
                       !instruction.guard;
    VisitDefs(instruction, [&](const ptx::Operand& operand) {
      const RegisterId id =
          operand.variable == nullptr ? kNoRegister : registers_.Find(*operand.variable, operand.index);
      if (id == kNoRegister) return;
      numbers_[id] =
          moves && ++writes[id] == 1 ? std::optional(instruction.operands[1].int_literal.value) : std::nullopt;
      if (!moves) writes[id] = 2;
    });
  }
}

std::optional<std::uint64_t> Uniformity::NumberOf(const ptx::Operand& operand) const {
  if (operand.kind == ptx::OperandKind::kInt) return operand.int_literal.value;
  if (operand.kind != ptx::OperandKind::kRegister || operand.minus || operand.variable == nullptr) return std::nullopt;
  if (operand.variable->vector != 1) return std::nullopt;  // one entry for all its components
  const RegisterId id = registers_.Find(*operand.variable, operand.index);
  return id != kNoRegister ? numbers_[id] : std::nullopt;
}

/// The value of a register, a special register or a literal.
LaneValue Uniformity::ValueOf(const ptx::Operand& operand) const {
  if (operand.kind == ptx::OperandKind::kSpecial) return ValueOfSpecial(operand.text, scope_);
  if (operand.kind == ptx::OperandKind::kInt)
    return operand.int_literal.value % 32 == 0 ? LaneValue::kAligned : LaneValue::kSame;
  if (operand.kind == ptx::OperandKind::kVector || operand.kind == ptx::OperandKind::kPair || operand.minus)
    return LaneValue::kDiffers;
  if (operand.kind != ptx::OperandKind::kRegister) return LaneValue::kSame;
  if (operand.variable != nullptr && operand.variable->vector != 1)
    return LaneValue::kDiffers;  // a half of an aligned number is none
  const RegisterId id = operand.variable == nullptr ? kNoRegister : registers_.Find(*operand.variable, operand.index);
  return id != kNoRegister ? values_[id] : LaneValue::kDiffers;
}

/// What is known of the registers that it reads, all in all: kThread where one is a thread's index and none differs.
LaneValue Uniformity::Read(const Instruction& instruction) const {
  using enum LaneValue;
  LaneValue all = kSame;
  VisitUses(instruction, [&](const ptx::Operand& operand) {
    const LaneValue one =
        operand.variable == nullptr ? kDiffers : values_[registers_.Find(*operand.variable, operand.index)];
    if (one == kUnset && all == kSame) all = kUnset;
    else if (one >= kThread && all != kDiffers) all = one;
  });
  return all;
}

bool Uniformity::IsGuardUniform(const Instruction& instruction) const {
  bool uniform = true;
  VisitGuard(instruction, [&](const ptx::Variable& variable, std::uint32_t index) {
    uniform = uniform && values_[registers_.Find(variable, index)] < LaneValue::kThread;
  });
  return uniform;
}

LaneValue Uniformity::Result(const CfgInstruction& at) const {
  using enum LaneValue;
  const Instruction& instruction = *at.instruction;
  const bool is_entry = cfg_.function().is_entry;
  if (divergent_blocks_[at.block] || !IsGuardUniform(instruction)) return kDiffers;
  const OperandFacts facts{.value = [this](const ptx::Operand& operand) { return ValueOf(operand); },
                           .number = [this](const ptx::Operand& operand) { return NumberOf(operand); }};
  if (scope_ == Scope::kWarp && is_entry && LanesAgree(instruction, facts)) return kSame;
  if (MakesDivergent(instruction, is_entry, scope_)) return kDiffers;
  const LaneValue read = Read(instruction);
  return read == kDiffers || read == kUnset ? read : ResultOf(instruction, read == kThread, facts);
}

// One round; each makes less known of a register, or a block divergent.
bool Uniformity::Propagate() {
  bool changed = false;
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
    const BasicBlock& block = cfg_.blocks()[at.block];
    const bool is_end = at.instruction == cfg_.instructions()[block.first + block.count - 1].instruction &&
                        block.end != BlockEnd::kFallthrough;
    if (is_end && (!IsGuardUniform(*at.instruction) || Read(*at.instruction) >= LaneValue::kThread)) spread(at.block);
    const LaneValue result = Result(at);
    VisitDefs(*at.instruction, [&](const ptx::Operand& operand) {
      const RegisterId id =
          operand.variable == nullptr ? kNoRegister : registers_.Find(*operand.variable, operand.index);
      if (id == kNoRegister) return;
      const LaneValue joined = Join(values_[id], result);
      changed = changed || joined != values_[id];
      values_[id] = joined;
    });
  }
  return changed;
}

}  // namespace gridloom::analysis
