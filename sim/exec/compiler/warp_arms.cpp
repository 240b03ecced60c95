// Small arms: the one or two blocks of an if without control flow of their own run under their masks, one after the
// other, and the lanes go on together. That spares the pending set and the dispatcher, and a converged warp stays
// converged.
#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// `instruction` can neither wait for other lanes nor end threads.
bool WarpFunction::RunsThrough(const llvm::Instruction& instruction) const {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (!call || (call->getCalledFunction() && call->getCalledFunction()->isIntrinsic())) return true;
  const MarkerInfo* info = module_.MarkerOf(instruction);
  if (!info) return false;
  switch (info->kind) {
    case MarkerKind::kSpecial:
    case MarkerKind::kParam:
    case MarkerKind::kSymbol:
    case MarkerKind::kLoad:
    case MarkerKind::kStore:
    case MarkerKind::kAtomic:
    case MarkerKind::kRecord:
    case MarkerKind::kRecordLoop:
    case MarkerKind::kFetchAhead:
    case MarkerKind::kToGeneric:
    case MarkerKind::kFromGeneric: return true;
    default: return false;
  }
}

/// `block` runs only after `from`, is short, and can neither wait nor end threads.
bool WarpFunction::IsSmallArm(const BasicBlock* block, const BasicBlock* from) const {
  constexpr unsigned kMostCost = 40, kMarkerCost = 6;
  if (block->getSinglePredecessor() != from || !block->getSingleSuccessor()) return false;
  if (order_.IndexOf(block) <= order_.IndexOf(from) ||
      order_.IndexOf(block->getSingleSuccessor()) <= order_.IndexOf(block))
    return false;
  unsigned cost = 0;
  for (const llvm::Instruction& instruction : *block) {
    if (!RunsThrough(instruction)) return false;
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
BasicBlock* WarpFunction::JoinOfArms(const llvm::BranchInst& branch) const {
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
void WarpFunction::EmitArm(BasicBlock* arm, BasicBlock* join, Value* mask, bool surely) {
  BasicBlock* after = nullptr;
  if (!surely) {
    BasicBlock* run = NewBlock("arm");
    after = NewBlock("after_arm");
    b_.CreateCondBr(b_.CreateICmpNE(mask, b_.getInt32(0)), run, after);
    b_.SetInsertPoint(run);
  }
  {
    Scope scope(*this);
    const unsigned outer_current = current_;
    const bool outer_divergent = divergent_;
    Value* outer_mask = mask_;
    current_ = order_.IndexOf(arm);
    divergent_ = true;
    mask_ = mask;
    mask_lanes_ = nullptr;
    for (llvm::Instruction& instruction : *arm) {
      if (!instruction.isTerminator() && !(UsedOutside(instruction) && IsEntryValue(&instruction)))
        EmitInstruction(instruction);
    }
    SaveRecordCursor();
    CopyPhis(join, mask);
    current_ = outer_current;
    divergent_ = outer_divergent;
    mask_ = outer_mask;
  }
  if (after) {
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }
}

/// Both ways of a divergent branch up to their join, then on from there. `taken`: the lanes for which the condition
/// holds.
void WarpFunction::EmitArms(const llvm::BranchInst& branch, BasicBlock* join, Value* taken, bool both) {
  Value* rest = b_.CreateXor(taken, mask_);
  for (unsigned way = 0; way < 2; ++way) {
    BasicBlock* to = branch.getSuccessor(way);
    if (to == join) CopyPhis(join, divergent_ ? mask_ : nullptr);  // before the arm: its lanes are overwritten
  }
  for (unsigned way = 0; way < 2; ++way) {
    BasicBlock* to = branch.getSuccessor(way);
    if (to != join) EmitArm(to, join, way == 0 ? taken : rest, both);
  }
  const unsigned index = order_.IndexOf(join);
  if (divergent_) return Arrive(index, mask_);
  b_.CreateBr(converged_[index]);
}

}  // namespace gridloom::exec
