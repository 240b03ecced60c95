// Small arms: the one or two blocks of an if without control flow of their own run under their masks, one after the
// other, and the lanes go on together. That spares the pending set and the dispatcher, and a converged warp stays
// converged.

#include "sim/exec/compiler/warp_arms.h"

#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_source.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// `block` runs only after `from`, is short, and can neither wait nor end threads.
bool ArmEmitter::IsSmallArm(const BasicBlock* block, const BasicBlock* from) const {
  constexpr unsigned kMostCost = 40, kMarkerCost = 6;
  if (block->getSinglePredecessor() != from || !block->getSingleSuccessor()) return false;
  if (source_.order.IndexOf(block) <= source_.order.IndexOf(from) ||
      source_.order.IndexOf(block->getSingleSuccessor()) <= source_.order.IndexOf(block))
    return false;
  unsigned cost = 0;
  for (const llvm::Instruction& instruction : *block) {
    if (!source_.RunsThrough(instruction)) return false;
    const MarkerInfo* info = module_.MarkerOf(instruction);
    if (info && info->kind == MarkerKind::kRecord) continue;  // what is recorded takes the same way as what is not
    ++cost;
    if (info && info->kind != MarkerKind::kSpecial && info->kind != MarkerKind::kParam &&
        info->kind != MarkerKind::kSymbol) {
      cost += kMarkerCost;
    }
  }
  return cost <= kMostCost;
}

/// The block where both ways of a branch meet again after small arms, or null.
BasicBlock* ArmEmitter::JoinOfArms(const llvm::BranchInst& branch) const {
  const BasicBlock* from = branch.getParent();
  BasicBlock* on_true = branch.getSuccessor(0);
  BasicBlock* on_false = branch.getSuccessor(1);
  const bool arm_true = IsSmallArm(on_true, from), arm_false = IsSmallArm(on_false, from);
  if (arm_true && on_true->getSingleSuccessor() == on_false) return on_false;
  if (arm_false && on_false->getSingleSuccessor() == on_true) return on_true;
  if (arm_true && arm_false && on_true->getSingleSuccessor() == on_false->getSingleSuccessor())
    return on_true->getSingleSuccessor();
  return nullptr;
}

/// Runs a small arm for the lanes of `mask` at the current place. `surely`: the mask is known not to be empty.
void ArmEmitter::EmitArm(BasicBlock* arm, BasicBlock* join, Value* mask, bool surely) {
  BasicBlock* after = nullptr;
  if (!surely) {
    BasicBlock* run = w_.NewBlock("arm");
    after = w_.NewBlock("after_arm");
    b_.CreateCondBr(b_.CreateICmpNE(mask, b_.getInt32(0)), run, after);
    b_.SetInsertPoint(run);
  }
  {
    Scope scope(w_);
    const unsigned outer_current = w_.current;
    const bool outer_divergent = w_.divergent;
    Value* outer_mask = w_.mask;
    w_.current = source_.order.IndexOf(arm);
    w_.divergent = true;
    w_.mask = mask;
    w_.mask_lanes = nullptr;
    for (llvm::Instruction& instruction : *arm) {
      if (!instruction.isTerminator() && !(UsedOutside(instruction) && values_.IsEntryValue(&instruction)))
        values_.EmitInstruction(instruction);
    }
    record_groups_.SaveRecordCursor();
    copies_.CopyPhis(join, mask);
    w_.current = outer_current;
    w_.divergent = outer_divergent;
    w_.mask = outer_mask;
  }
  if (after) {
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }
}

/// Both ways of a divergent branch up to their join, then on from there. `taken`: the lanes for which the condition
/// holds.
void ArmEmitter::EmitArms(const llvm::BranchInst& branch, BasicBlock* join, Value* taken, bool both) {
  Value* rest = b_.CreateXor(taken, w_.mask);
  for (unsigned way = 0; way < 2; ++way) {
    BasicBlock* to = branch.getSuccessor(way);
    if (to == join)
      copies_.CopyPhis(join, w_.divergent ? w_.mask : nullptr);  // before the arm: its lanes are overwritten
  }
  for (unsigned way = 0; way < 2; ++way) {
    BasicBlock* to = branch.getSuccessor(way);
    if (to != join) EmitArm(to, join, way == 0 ? taken : rest, both);
  }
  const unsigned index = source_.order.IndexOf(join);
  if (w_.divergent) return copies_.Arrive(index, w_.mask);
  b_.CreateBr(copies_.converged[index]);
}

}  // namespace gridloom::exec
