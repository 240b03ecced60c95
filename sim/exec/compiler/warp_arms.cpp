// Small arms: the few blocks of an if, with ifs in them but no loops, run under their masks, one after the other, and
// the lanes go on together. That spares the pending set and the dispatcher, and a converged warp stays converged.

#include "sim/exec/compiler/warp_arms.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/CFG.h>

#include <utility>

#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_source.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// Adds `block` to an arm: it can neither wait nor end threads.
bool ArmEmitter::AddTo(Arm& arm, const BasicBlock* block) const {
  constexpr unsigned kMostCost = 40, kMarkerCost = 6;
  for (const llvm::Instruction& instruction : *block) {
    if (!source_.RunsThrough(instruction)) return false;
    const MarkerInfo* info = module_.MarkerOf(instruction);
    if (info && info->kind == MarkerKind::kRecord) continue;  // what is recorded takes the same way as what is not
    ++arm.cost;
    if (info && info->kind != MarkerKind::kSpecial && info->kind != MarkerKind::kParam &&
        info->kind != MarkerKind::kSymbol) {
      arm.cost += kMarkerCost;
    }
  }
  arm.blocks.push_back(block);
  return arm.cost <= kMostCost;
}

/// What runs from `first` on, and only after `from`: one block, or several with ifs in it. Its end is null where it is
/// no small arm.
ArmEmitter::Arm ArmEmitter::ArmFrom(const BasicBlock* first, const BasicBlock* from, unsigned depth) const {
  Arm arm;
  if (first->getSinglePredecessor() != from) return arm;
  const BasicBlock* last = from;
  const auto inside = [&](const BasicBlock* block) { return llvm::is_contained(arm.blocks, block); };
  for (const BasicBlock* block = first; block;) {
    if (source_.order.IndexOf(block) <= source_.order.IndexOf(last) || !AddTo(arm, block)) return arm;
    last = block;
    const BasicBlock* next = block->getSingleSuccessor();
    if (!next && !AddIf(arm, *block, depth, next)) return arm;
    if (source_.order.IndexOf(next) <= source_.order.IndexOf(block)) return arm;
    if (!nests_ || !llvm::all_of(llvm::predecessors(next), inside)) {
      arm.end = const_cast<BasicBlock*>(next);
      return arm;
    }
    block = next;
  }
  return arm;
}

/// Adds both ways of a divergent branch in an arm; `join` is where they meet.
bool ArmEmitter::AddIf(Arm& arm, const BasicBlock& block, unsigned depth, const BasicBlock*& join) const {
  constexpr unsigned kMostNested = 2;
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (!nests_ || depth == kMostNested || !branch || !source_.shapes.IsDivergent(branch)) return false;
  const Arm ways = ArmsOf(*branch, depth + 1);
  join = ways.end;
  arm.cost += ways.cost;
  arm.blocks.append(ways.blocks.begin(), ways.blocks.end());
  return join != nullptr;
}

/// Both arms of a branch, which end where they meet; the end is null where they are not small or do not.
ArmEmitter::Arm ArmEmitter::ArmsOf(const llvm::BranchInst& branch, unsigned depth) const {
  BasicBlock* on_true = branch.getSuccessor(0);
  BasicBlock* on_false = branch.getSuccessor(1);
  Arm one = ArmFrom(on_true, branch.getParent(), depth), other = ArmFrom(on_false, branch.getParent(), depth);
  if (one.end == on_false) return one;
  if (other.end == on_true) return other;
  if (one.end != other.end) one.end = nullptr;
  one.cost += other.cost;
  one.blocks.append(other.blocks.begin(), other.blocks.end());
  return one;
}

BasicBlock* ArmEmitter::JoinOfArms(const llvm::BranchInst& branch) const { return ArmsOf(branch, 0).end; }

llvm::SmallVector<const BasicBlock*, 4> ArmEmitter::BlocksOfArms(const llvm::BranchInst& branch) const {
  Arm arms = ArmsOf(branch, 0);
  return arms.end ? std::move(arms.blocks) : llvm::SmallVector<const BasicBlock*, 4>{};
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
    w_.divergent = true;
    w_.mask = mask;
    w_.mask_lanes = nullptr;
    for (BasicBlock* block = arm; block != join;) block = EmitArmBlock(*block);
    w_.current = outer_current;
    w_.divergent = outer_divergent;
    w_.mask = outer_mask;
  }
  if (after) {
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }
}

/// One block of an arm for the lanes of the mask, with the ifs behind it. Returns where they go on.
BasicBlock* ArmEmitter::EmitArmBlock(BasicBlock& block) {
  w_.current = source_.order.IndexOf(&block);
  for (llvm::Instruction& instruction : block) {
    if (!instruction.isTerminator() && !llvm::isa<llvm::PHINode>(instruction) &&
        !(UsedOutside(instruction) && values_.IsEntryValue(&instruction)))
      values_.EmitInstruction(instruction);
  }
  record_groups_.SaveRecordCursor();
  if (BasicBlock* const next = block.getSingleSuccessor()) {
    copies_.CopyPhis(next, w_.mask);
    return next;
  }
  const auto& branch = *llvm::cast<llvm::BranchInst>(block.getTerminator());
  BasicBlock* const join = JoinOfArms(branch);
  EmitWays(branch, join, b_.CreateAnd(w_.ToBits(values_.Lanes(branch.getCondition())), w_.mask), false);
  return join;
}

/// Both ways of a divergent branch up to their join. `taken`: the lanes for which the condition holds.
void ArmEmitter::EmitWays(const llvm::BranchInst& branch, BasicBlock* join, Value* taken, bool both) {
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
}

/// The same, then on from there.
void ArmEmitter::EmitArms(const llvm::BranchInst& branch, BasicBlock* join, Value* taken, bool both) {
  EmitWays(branch, join, taken, both);
  const unsigned index = source_.order.IndexOf(join);
  if (w_.divergent) return copies_.Arrive(index, w_.mask);
  b_.CreateBr(copies_.converged[index]);
}

}  // namespace gridloom::exec
