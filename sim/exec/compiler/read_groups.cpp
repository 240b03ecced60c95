#include "sim/exec/compiler/read_groups.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "sim/exec/compiler/block_order.h"
#include "sim/exec/compiler/compare_and_swap.h"
#include "sim/exec/compiler/root_and_offset.h"
#include "sim/exec/contract/read_group.h"

namespace gridloom::exec {

bool StandInRows(const LanePattern& pattern, SharedAccessImm& imm) {
  for (const unsigned lanes : {kWarpSize, kWarpSize / 2, kWarpSize / 4}) {
    bool uniform = true, consecutive = true;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const std::int64_t offset = pattern[lane] - pattern[lane / lanes * lanes];
      uniform &= offset == 0;
      consecutive &= offset == static_cast<std::int64_t>(lane % lanes) * imm.bytes;
    }
    if (!uniform && !consecutive) continue;
    imm.pattern = uniform ? SharedAccessImm::kUniform : SharedAccessImm::kConsecutive;
    imm.row_lanes = static_cast<std::uint8_t>(lanes);
    return true;
  }
  return false;
}

namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::Instruction;
using llvm::Value;

class ReadGrouper {
 public:
  ReadGrouper(SpmdModule& spmd, llvm::Function& function, const CompileOptions& options)
      : spmd_(spmd),
        function_(function),
        dominators_(function),
        loops_(dominators_),
        order_(ComputeBlockOrder(function, loops_)),
        shapes_(function, spmd, loops_, order_, options) {}

  void Run() {
    std::vector<BasicBlock*> blocks;
    for (BasicBlock& block : function_) blocks.push_back(&block);
    for (BasicBlock* block : blocks) {
      while (block && added_ < kMostAdded) block = GroupFirst(*block);
    }
  }

 private:
  static constexpr std::size_t kMostAdded = 4000;  // instructions of a function that there are twice

  struct Stretch {
    llvm::SmallVector<CallInst*, 16> reads;
    llvm::SmallVector<std::pair<const Value*, unsigned>, 8> roots;  ///< of their addresses, with the reads' bytes
    unsigned bases = 0;                                             ///< addresses that these are
    Instruction* end = nullptr;                                     ///< the first one that is no part of it
  };

  const MarkerInfo* MarkerOf(const Instruction& instruction) const {
    const auto* call = llvm::dyn_cast<CallInst>(&instruction);
    return call && call->getCalledFunction() ? spmd_.Find(call->getCalledFunction()) : nullptr;
  }

  static unsigned BytesOf(const MarkerInfo& info) { return info.element->getScalarSizeInBits() / 8 * info.count; }

  /// A read that may be one of a group, as far as it alone says.
  bool MayJoin(const CallInst& call, const MarkerInfo& info) const {
    if (info.kind != MarkerKind::kLoad || info.space != Space::kShared || info.strong || info.checked) return false;
    const unsigned element = info.element->getScalarSizeInBits() / 8, bytes = BytesOf(info);
    if (element > 8 || bytes > 32 || !std::has_single_bit(bytes) || BeginsCompareAndSwap(call, spmd_)) return false;
    if (!llvm::isa<llvm::ConstantInt>(call.getArgOperand(1))) return false;
    const Shape shape = shapes_.Of(call.getArgOperand(0));
    SharedAccessImm imm{.bytes = static_cast<std::uint8_t>(bytes)};
    return (shape.kind == ShapeKind::kUniform || shape.kind == ShapeKind::kAffine) && StandInRows(shape.pattern, imm);
  }

  /// Makes such a read one of the stretch, if that has room for it.
  bool Joins(CallInst& read, const MarkerInfo& info, Stretch& stretch) const {
    if (stretch.reads.size() == ReadGroup::kMostReads) return false;
    const std::pair<const Value*, unsigned> root{ResolveAll(read.getArgOperand(0)).root, BytesOf(info)};
    if (!llvm::is_contained(stretch.roots, root)) {
      SharedAccessImm imm{.bytes = static_cast<std::uint8_t>(BytesOf(info))};
      StandInRows(shapes_.Of(read.getArgOperand(0)).pattern, imm);
      const unsigned bases = stretch.bases + kWarpSize / imm.row_lanes;
      if (bases > ReadGroup::kMostBases) return false;
      stretch.bases = bases;
      stretch.roots.push_back(root);
    }
    stretch.reads.push_back(&read);
    return true;
  }

  /// Nothing that such an instruction does is seen by memcheck's checks of shared memory, or ends the grid.
  bool IsHarmless(const Instruction& instruction) const {
    if (instruction.isTerminator() || llvm::isa<llvm::PHINode>(instruction)) return false;
    const auto* call = llvm::dyn_cast<CallInst>(&instruction);
    if (!call) return !instruction.mayReadOrWriteMemory();
    const MarkerInfo* info = MarkerOf(*call);
    if (info && info->kind == MarkerKind::kHelper &&
        (info->helper == Helper::kLoadedBits || info->helper == Helper::kUseInvalid))
      return true;
    return !call->isConvergent() && !call->mayReadOrWriteMemory() && call->willReturn();
  }

  /// Arithmetic that may be done earlier, or for nothing.
  static bool IsMovable(const Instruction& instruction) {
    if (llvm::isa<llvm::SelectInst>(instruction) || llvm::isa<llvm::ICmpInst>(instruction)) return true;
    return instruction.isCast() || (instruction.isBinaryOp() && !instruction.isIntDivRem());
  }

  /// The first stretch of the block that is worth it becomes a group; where the block goes on behind it.
  BasicBlock* GroupFirst(BasicBlock& block) {
    Stretch stretch;
    llvm::DenseSet<const Value*> fixed;  // what the stretch computes and cannot be computed before it
    const auto is_fixed = [&](const Value* value) { return fixed.contains(value); };
    for (Instruction& instruction : block) {
      const MarkerInfo* info = MarkerOf(instruction);
      auto* call = llvm::dyn_cast<CallInst>(&instruction);
      const bool read = info && MayJoin(*call, *info);
      if (read && !is_fixed(call->getArgOperand(0)) && Joins(*call, *info, stretch)) {
        fixed.insert(call);
        continue;
      }
      if (stretch.reads.empty()) continue;
      if (!read && IsHarmless(instruction)) {
        if (!IsMovable(instruction) || llvm::any_of(instruction.operand_values(), is_fixed)) fixed.insert(&instruction);
        continue;
      }
      stretch.end = &instruction;
      if (stretch.reads.size() >= ReadGroup::kFewestReads) return Group(stretch, fixed);
      stretch = {};
      fixed.clear();
      if (read && Joins(*call, *info, stretch)) fixed.insert(call);
    }
    return nullptr;
  }

  BasicBlock* Group(const Stretch& stretch, const llvm::DenseSet<const Value*>& fixed) {
    CallInst* const first = stretch.reads.front();
    MoveAhead(*first, *stretch.end, fixed);
    Value* const all_good = AskForAll(stretch);
    BasicBlock* const before = first->getParent();
    BasicBlock* const rest = llvm::SplitBlock(before, stretch.end);
    BasicBlock* const checked = llvm::SplitBlock(before, first);
    TakeApart(*checked);
    llvm::ValueToValueMapTy copies;
    BasicBlock* const reads = CopyUnchecked(*checked, stretch, copies);
    llvm::BranchInst::Create(rest, reads);
    Join(*checked, *reads, *rest, copies);
    before->getTerminator()->eraseFromParent();
    auto* branch = llvm::BranchInst::Create(reads, checked, all_good, before);
    branch->setMetadata(llvm::LLVMContext::MD_prof,
                        llvm::MDBuilder(function_.getContext()).createBranchWeights(2000, 1));
    added_ += reads->size();
    return rest;
  }

  /// What does not depend on the reads, and is a scalar or an address of one, comes before them: there is one of it.
  void MoveAhead(Instruction& first, const Instruction& end, const llvm::DenseSet<const Value*>& fixed) {
    llvm::SmallVector<Instruction*, 16> ahead;
    for (Instruction* at = &first; at != &end; at = at->getNextNode())
      if (!fixed.contains(at) && IsMovable(*at)) ahead.push_back(at);
    for (Instruction* instruction : ahead) instruction->moveBefore(&first);
  }

  Value* AskForAll(const Stretch& stretch) {
    SpmdBuilder b(spmd_);
    b.SetInsertPoint(stretch.reads.front());
    b.line = static_cast<std::uint32_t>(LineOf(*stretch.reads.front())->getZExtValue());
    llvm::SmallVector<Value*, 48> inputs;
    for (const CallInst* read : stretch.reads) {
      const MarkerInfo& info = *MarkerOf(*read);
      inputs.append({read->getArgOperand(0), b.getInt32(BytesOf(info)), read->getArgOperand(1)});
    }
    return b.CallHelper(Helper::kCheckReads, {b.getInt1Ty()}, inputs);
  }
  static const llvm::ConstantInt* LineOf(const CallInst& read) {
    return llvm::cast<llvm::ConstantInt>(read.getArgOperand(1));
  }

  /// Vectors that are read leave the block as their elements.
  static void TakeApart(BasicBlock& block) {
    for (Instruction& instruction : llvm::make_early_inc_range(block)) {
      if (!instruction.getType()->isStructTy()) continue;
      llvm::SmallVector<llvm::ExtractValueInst*, 4> outside;
      for (llvm::User* user : instruction.users()) {
        auto* extract = llvm::dyn_cast<llvm::ExtractValueInst>(user);
        if (extract && extract->getParent() != &block) outside.push_back(extract);
      }
      for (llvm::ExtractValueInst* extract : outside) extract->moveAfter(&instruction);
    }
  }

  /// Whether invalid bits are asked for of what the reads of the stretch have read.
  bool IsAboutReads(const CallInst& call, const MarkerInfo& info, const Stretch& stretch) const {
    if (info.kind != MarkerKind::kHelper || info.helper != Helper::kLoadedBits) return false;
    const RootAndOffset at = Resolve(call.getArgOperand(0));
    const std::int64_t bytes = UnpackImm<ShadowImm>(info.imm).bytes;
    return llvm::any_of(stretch.reads, [&](CallInst* read) {
      const MarkerInfo& of = *MarkerOf(*read);
      const std::int64_t read_bytes = BytesOf(of);
      const RootAndOffset from = Resolve(read->getArgOperand(0));
      if (call.getArgOperand(0) == read->getArgOperand(0)) return bytes <= read_bytes;
      if (at.root == read->getArgOperand(0)) return at.offset >= 0 && at.offset + bytes <= read_bytes;
      return at.root == from.root && at.offset >= from.offset && at.offset + bytes <= from.offset + read_bytes;
    });
  }

  /// A copy of `checked` whose reads ask nobody.
  BasicBlock* CopyUnchecked(BasicBlock& checked, const Stretch& stretch, llvm::ValueToValueMapTy& copies) {
    const llvm::SimplifyQuery query(function_.getParent()->getDataLayout());
    const llvm::DenseSet<const Instruction*> reads(stretch.reads.begin(), stretch.reads.end());
    auto* block = BasicBlock::Create(function_.getContext(), "reads", &function_, &checked);
    for (Instruction& instruction : checked) {
      if (instruction.isTerminator()) break;
      const MarkerInfo* info = MarkerOf(instruction);
      if (info && IsAboutReads(llvm::cast<CallInst>(instruction), *info, stretch)) {
        copies[&instruction] = llvm::Constant::getNullValue(instruction.getType());
        continue;
      }
      Instruction* const copy = instruction.clone();
      copy->insertInto(block, block->end());
      llvm::RemapInstruction(copy, copies, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
      if (reads.contains(&instruction)) llvm::cast<CallInst>(copy)->setCalledFunction(Unchecked(*info, instruction));
      Value* const simpler = llvm::isa<CallInst>(copy) ? nullptr : llvm::simplifyInstruction(copy, query);
      copies[&instruction] = simpler ? simpler : copy;
      if (simpler) copy->eraseFromParent();
    }
    return block;
  }

  llvm::Function* Unchecked(MarkerInfo info, const Instruction& read) {
    info.checked = true;
    const llvm::FunctionType* const type = llvm::cast<CallInst>(read).getFunctionType();
    return spmd_.Marker(info, type->getReturnType(), type->params());
  }

  /// What is used behind both ways comes from the one that was taken.
  static void Join(BasicBlock& checked, BasicBlock& reads, BasicBlock& rest, llvm::ValueToValueMapTy& copies) {
    for (Instruction& instruction : checked) {
      if (!instruction.isUsedOutsideOfBlock(&checked)) continue;
      auto* phi = llvm::PHINode::Create(instruction.getType(), 2, "", rest.begin());
      instruction.replaceUsesOutsideBlock(phi, &checked);
      phi->addIncoming(copies[&instruction], &reads);
      phi->addIncoming(&instruction, &checked);
    }
  }

  SpmdModule& spmd_;
  llvm::Function& function_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  BlockOrder order_;
  ShapeAnalysis shapes_;
  std::size_t added_ = 0;
};

/// Whether there can be a stretch: for most functions that saves finding shapes.
bool HasReads(const SpmdModule& spmd, const llvm::Function& function) {
  return llvm::any_of(function, [&](const BasicBlock& block) {
    return llvm::count_if(block, [&](const Instruction& instruction) {
             const auto* call = llvm::dyn_cast<CallInst>(&instruction);
             const MarkerInfo* info =
                 call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
             return info && info->kind == MarkerKind::kLoad && info->space == Space::kShared;
           }) >= ReadGroup::kFewestReads;
  });
}

}  // namespace

void PlaceReadGroups(SpmdModule& spmd, llvm::Function& function, const CompileOptions& options) {
  // The windows of a cluster's CTAs have gaps.
  if (options.clusters || !HasReads(spmd, function)) return;
  ReadGrouper(spmd, function, options).Run();
}

}  // namespace gridloom::exec
