#include "sim/exec/compiler/split_loops.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/exec/contract/abi.h"

namespace gridloom::exec {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr unsigned kRegisters = 16;

bool IsWide(const Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector && vector->getNumElements() == kWarpSize;
}

llvm::Type* HalfType(llvm::Type* type) { return llvm::FixedVectorType::get(type->getScalarType(), kHalfWarp); }

/// The scalar that all lanes have, or null.
Value* SplatOf(Value* value) { return const_cast<Value*>(llvm::getSplatValue(value)); }

/// Lane i of the result follows from lanes i of the operands.
bool IsByLane(const Instruction& instruction) {
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
    return llvm::isTriviallyVectorizable(intrinsic->getIntrinsicID()) &&
           llvm::all_of(intrinsic->args(),
                        [&](const llvm::Use& use) { return use->getType() == intrinsic->getType(); });
  if (llvm::isa<llvm::PHINode, llvm::SelectInst, llvm::CmpInst>(instruction) || instruction.isBinaryOp() ||
      instruction.isUnaryOp())
    return true;
  return instruction.isCast() && IsWide(instruction.getOperand(0));
}

/// A loop of one block that may be split.
class WideLoop {
 public:
  WideLoop(llvm::Loop& loop, unsigned vector_bits) : loop_(loop), block_(loop.getHeader()), vector_bits_(vector_bits) {}

  bool MaySplit();
  void Split();

 private:
  using Halves = llvm::DenseMap<Value*, Value*>;

  unsigned RegistersOf(const Value* value) const {
    return std::max(1u, value->getType()->getScalarSizeInBits() * kWarpSize / vector_bits_);
  }
  bool Fits(const Instruction& instruction);
  bool IsOutside(const Value* value) const;
  void CountLiveIns(const Instruction& instruction);
  Value* HalfOf(llvm::IRBuilder<>& b, Value* wide, unsigned half) const;
  BasicBlock* EmitHalf(unsigned half, BasicBlock* before, Halves& made);
  void EmitInstruction(llvm::IRBuilder<>& b, Instruction& instruction, Halves& made) const;
  void ReplaceResults(llvm::IRBuilder<>& b, const Halves& low, const Halves& high);

  llvm::Loop& loop_;
  BasicBlock* block_;
  BasicBlock* before_ = nullptr;
  const unsigned vector_bits_;
  llvm::SetVector<const Value*> live_ins_;  ///< wide ones that are made outside, but for splats
};

/// Splats of scalars, made by two instructions, are made anew.
bool IsPartOfSplat(const Instruction& instruction) {
  if (llvm::isa<llvm::ShuffleVectorInst>(instruction)) return llvm::getSplatValue(&instruction) != nullptr;
  return llvm::isa<llvm::InsertElementInst>(instruction) &&
         llvm::all_of(instruction.users(), [](const llvm::User* user) {
           return llvm::isa<llvm::ShuffleVectorInst>(user) && llvm::getSplatValue(user) != nullptr;
         });
}

bool WideLoop::Fits(const Instruction& instruction) {
  if (instruction.isTerminator()) return llvm::isa<llvm::BranchInst>(instruction);
  if (IsPartOfSplat(instruction)) return true;
  if (IsWide(&instruction)) return IsByLane(instruction);
  // The same scalars are made twice.
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
  const bool plain = load ? load->isSimple() : !instruction.mayReadOrWriteMemory();
  return plain && !instruction.getType()->isVectorTy() && !instruction.getType()->isStructTy() &&
         llvm::none_of(instruction.operands(), [](const llvm::Use& use) { return use->getType()->isVectorTy(); });
}

bool WideLoop::IsOutside(const Value* value) const {
  const auto* made = llvm::dyn_cast<Instruction>(value);
  return !made || made->getParent() != block_;
}

void WideLoop::CountLiveIns(const Instruction& instruction) {
  for (Value* operand : instruction.operands()) {
    if (!llvm::isa<llvm::Constant>(operand) && IsOutside(operand) && IsWide(operand) && !SplatOf(operand))
      live_ins_.insert(operand);
  }
}

bool WideLoop::MaySplit() {
  if (loop_.getNumBlocks() != 1 || !loop_.getUniqueExitBlock()) return false;
  if (!loop_.getLoopPredecessor()) return false;
  unsigned needed = 0, most = 0;
  for (const Instruction& instruction : *block_) {
    if (!Fits(instruction)) return false;
    if (!IsWide(&instruction) || IsPartOfSplat(instruction)) continue;
    most = std::max(most, RegistersOf(&instruction));
    if (llvm::isa<llvm::PHINode>(instruction)) needed += RegistersOf(&instruction);
    else CountLiveIns(instruction);
  }
  for (const Value* value : live_ins_) needed += RegistersOf(value);
  return most != 0 && needed + most > kRegisters;
}

Value* WideLoop::HalfOf(llvm::IRBuilder<>& b, Value* wide, unsigned half) const {
  if (Value* splat = SplatOf(wide); splat && !llvm::isa<llvm::Constant>(wide))
    return b.CreateVectorSplat(kHalfWarp, splat);
  llvm::SmallVector<int, kHalfWarp> pick;
  for (unsigned lane = 0; lane < kHalfWarp; ++lane) pick.push_back(static_cast<int>(half * kHalfWarp + lane));
  return b.CreateShuffleVector(wide, pick);
}

void WideLoop::EmitInstruction(llvm::IRBuilder<>& b, Instruction& instruction, Halves& made) const {
  b.SetCurrentDebugLocation(instruction.getDebugLoc());
  const auto of = [&](Value* value) -> Value* {
    const auto it = made.find(value);
    return it != made.end() ? it->second : value;
  };
  if (IsPartOfSplat(instruction)) {
    if (Value* scalar = SplatOf(&instruction)) made[&instruction] = b.CreateVectorSplat(kHalfWarp, of(scalar));
    return;
  }
  if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction); intrinsic && IsWide(intrinsic)) {
    llvm::SmallVector<Value*, 4> arguments;
    for (Value* argument : intrinsic->args()) arguments.push_back(of(argument));
    made[&instruction] = b.CreateIntrinsic(intrinsic->getIntrinsicID(), {HalfType(intrinsic->getType())}, arguments);
    return;
  }
  Instruction* copy = instruction.clone();
  if (IsWide(&instruction)) copy->mutateType(HalfType(instruction.getType()));
  for (llvm::Use& use : copy->operands()) {
    if (!llvm::isa<BasicBlock>(use.get())) use.set(of(use.get()));
  }
  made[&instruction] = b.Insert(copy);
}

/// The loop over lanes of one half: behind `before`, which has no terminator. Returns the block behind it.
BasicBlock* WideLoop::EmitHalf(unsigned half, BasicBlock* before, Halves& made) {
  llvm::Function* function = block_->getParent();
  BasicBlock* round = BasicBlock::Create(function->getContext(), "half_round", function, block_);
  BasicBlock* after = BasicBlock::Create(function->getContext(), "half_after", function, block_);
  llvm::IRBuilder<> b(before);
  for (Instruction& instruction : *block_) {
    for (Value* operand : instruction.operands()) {
      if (IsWide(operand) && IsOutside(operand) && !made.contains(operand)) made[operand] = HalfOf(b, operand, half);
    }
  }
  std::vector<std::pair<llvm::PHINode*, llvm::PHINode*>> phis;
  llvm::IRBuilder<> inside(round);
  for (llvm::PHINode& phi : block_->phis()) {
    Value* start = phi.getIncomingValueForBlock(before_);
    if (IsWide(&phi)) start = made.lookup(start);
    auto* copy = inside.CreatePHI(start->getType(), 2);
    copy->addIncoming(start, before);
    made[&phi] = copy;
    phis.emplace_back(&phi, copy);
  }
  b.CreateBr(round);
  for (Instruction& instruction : *block_) {
    if (!llvm::isa<llvm::PHINode>(instruction) && !instruction.isTerminator())
      EmitInstruction(inside, instruction, made);
  }
  for (const auto& [phi, copy] : phis) {
    Value* next = phi->getIncomingValueForBlock(block_);
    const auto it = made.find(next);
    copy->addIncoming(it != made.end() ? it->second : next, round);
  }
  auto* branch = llvm::cast<llvm::BranchInst>(block_->getTerminator());
  const auto condition = made.find(branch->getCondition());
  const bool stays_on_true = branch->getSuccessor(0) == block_;
  inside.SetCurrentDebugLocation(branch->getDebugLoc());
  inside.CreateCondBr(condition != made.end() ? condition->second : branch->getCondition(),
                      stays_on_true ? round : after, stays_on_true ? after : round);
  return after;
}

/// What others use of the loop comes from both halves.
void WideLoop::ReplaceResults(llvm::IRBuilder<>& b, const Halves& low, const Halves& high) {
  for (Instruction& instruction : *block_) {
    const bool used = llvm::any_of(instruction.users(), [&](const llvm::User* user) {
      return llvm::cast<Instruction>(user)->getParent() != block_;
    });
    if (!used) continue;
    Value* whole = high.lookup(&instruction);
    if (IsWide(&instruction)) whole = llvm::concatenateVectors(b, {low.lookup(&instruction), whole});
    instruction.replaceUsesOutsideBlock(whole, block_);
  }
}

void WideLoop::Split() {
  llvm::Function* function = block_->getParent();
  BasicBlock* exit = loop_.getUniqueExitBlock();
  // Another loop before this one may have been split since: its blocks are others now.
  for (BasicBlock* predecessor : llvm::predecessors(block_))
    if (predecessor != block_) before_ = predecessor;
  BasicBlock* start = BasicBlock::Create(function->getContext(), "halves", function, block_);
  Halves low, high;
  BasicBlock* between = EmitHalf(0, start, low);
  BasicBlock* after = EmitHalf(1, between, high);
  llvm::IRBuilder<> b(after);
  ReplaceResults(b, low, high);
  b.CreateBr(exit);
  exit->replacePhiUsesWith(block_, after);
  before_->getTerminator()->replaceSuccessorWith(block_, start);
  for (Instruction& instruction : *block_) instruction.dropAllReferences();
  block_->eraseFromParent();
}

void SplitLoopsOf(llvm::Function& function, unsigned vector_bits) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  std::vector<WideLoop> wide;
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    if (WideLoop candidate(*loop, vector_bits); loop->isInnermost() && candidate.MaySplit())
      wide.push_back(std::move(candidate));
  }
  for (WideLoop& loop : wide) loop.Split();
}

}  // namespace

void SplitWideLoops(llvm::Module& module, unsigned vector_bits) {
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) SplitLoopsOf(function, vector_bits);
  }
}

}  // namespace gridloom::exec
