#include "sim/exec/compiler/sync_checks.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <limits>
#include <memory>
#include <vector>

namespace gridloom::exec {
namespace {

using llvm::BasicBlock;

const MarkerInfo* MarkerOf(const SpmdModule& spmd, const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
}

bool IsZero(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant && constant->isZero();
}

/// A barrier of the CTA that threads wait at.
bool IsFullBarrier(const MarkerInfo& info) {
  if (info.kind != MarkerKind::kBarrier) return false;
  const auto op = static_cast<BarrierOp>(info.imm & 0xff);
  return op == BarrierOp::kSync || op == BarrierOp::kRedPopc || op == BarrierOp::kRedAnd || op == BarrierOp::kRedOr;
}

/// What other lanes may have to come to, too.
bool IsSync(const MarkerInfo& info) {
  return info.kind == MarkerKind::kSync && UnpackImm<SyncImm>(info.imm).shadow == 0;
}

/// Whether a thread does anything in the block besides going on or ending.
bool DoesSomething(const BasicBlock& block) {
  return block.getFirstNonPHIOrDbg() != block.getTerminator() || block.getTerminator()->getNumSuccessors() > 1;
}

class Placer {
 public:
  Placer(SpmdModule& spmd, llvm::Function& function)
      : spmd_(spmd), function_(function), dominators_(function), post_dominators_(function), loops_(dominators_) {}

  void Run() {
    for (llvm::Instruction& instruction : llvm::instructions(function_)) {
      const MarkerInfo* info = MarkerOf(spmd_, instruction);
      if (info && (info->kind == MarkerKind::kBarrier || IsSync(*info)))
        AddSync(llvm::cast<llvm::CallInst>(instruction), *info);
    }
    if (!MayCount()) {
      for (const auto& [block, region] : regions_) region->has_others = true;
    }
    for (Sync& sync : syncs_) Surround(sync);
    for (const auto& [block, region] : regions_) {
      SpmdBuilder b(spmd_);
      b.SetInsertPoint(&*block->getFirstInsertionPt());
      b.CallHelper(Helper::kPassSync, {}, {}, PackImm(PassSyncImm{region->number, region->IsCounted() ? 1u : 0u}));
    }
  }

 private:
  struct Region {
    std::uint16_t number = 0;
    bool has_counted = false,
         has_others = false;  ///< barriers before it that each thread comes to once at most; others
    bool IsCounted() const { return has_counted && !has_others; }
  };
  struct Sync {
    llvm::CallInst* call;
    SyncCheckImm imm;
    const Region* region = nullptr;  ///< the first one
  };

  void AddSync(llvm::CallInst& call, const MarkerInfo& info) {
    const bool barrier = info.kind == MarkerKind::kBarrier;
    Sync sync{.call = &call, .imm = {}};
    llvm::SmallVector<Region*, SyncCheckImm::kMostRegions> regions = FindRegions(*call.getParent(), sync.imm);
    if (!regions.empty()) sync.region = regions.front();
    if (!barrier) {
      sync.imm.exchange = ExchangeOf(UnpackImm<SyncImm>(info.imm));
    } else {
      sync.imm.flags = SyncCheckImm::kBarrier;
      if ((info.imm & kBarrierAligned) != 0) sync.imm.flags |= SyncCheckImm::kAligned;
      const bool counted = IsFullBarrier(info) && IsZero(call.getArgOperand(1)) &&
                           loops_.getLoopFor(call.getParent()) == nullptr && !regions.empty();
      for (Region* region : regions) (counted ? region->has_counted : region->has_others) = true;
      if (counted) sync.imm.flags |= SyncCheckImm::kCounted;
    }
    if (!barrier || IsFullBarrier(info)) syncs_.push_back(sync);
  }

  void Surround(Sync& sync) {
    llvm::CallInst& call = *sync.call;
    SpmdBuilder b(spmd_);
    b.line = static_cast<std::uint32_t>(
        llvm::cast<llvm::ConstantInt>(call.getArgOperand(call.arg_size() - 1))->getZExtValue());
    b.SetInsertPoint(&call);
    const bool barrier = sync.imm.has(SyncCheckImm::kBarrier), aligned = sync.imm.has(SyncCheckImm::kAligned);
    if (sync.imm.has(SyncCheckImm::kCounted) && !sync.region->IsCounted()) sync.imm.flags &= ~SyncCheckImm::kCounted;
    if (barrier && !aligned && !sync.imm.has(SyncCheckImm::kCounted)) return;
    b.CallHelper(Helper::kEnterSync, {}, {barrier ? b.getInt32(~0u) : call.getArgOperand(0)}, PackImm(sync.imm));
    if (barrier && !aligned) return;  // lanes of a warp come to it when they like
    // A barrier ends its block.
    if (barrier) b.SetInsertPoint(&*call.getParent()->getSingleSuccessor()->getFirstInsertionPt());
    else b.SetInsertPoint(call.getNextNode());
    b.CallHelper(Helper::kLeaveSync, {}, {});
  }

  /// Each thread runs the function once, and comes to barriers nowhere else.
  bool MayCount() const {
    if (!function_.use_empty() || function_.hasInternalLinkage()) return false;
    return llvm::none_of(llvm::instructions(function_), [&](const llvm::Instruction& instruction) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (!call) return false;
      const MarkerInfo* info = MarkerOf(spmd_, instruction);
      return info ? info->kind == MarkerKind::kIndirectCall
                  : !call->getCalledFunction() || !call->getCalledFunction()->isDeclaration();
    });
  }

  /// The nearest region, and the nearest one outside of each loop: where lanes come to that have left it.
  llvm::SmallVector<Region*, SyncCheckImm::kMostRegions> FindRegions(const BasicBlock& from, SyncCheckImm& imm) {
    llvm::SmallVector<Region*, SyncCheckImm::kMostRegions> found;
    const llvm::Loop* loop = loops_.getLoopFor(&from);
    bool here = true;  // one in the loop `loop` is looked for
    for (const auto* node = post_dominators_.getNode(&from); node && found.size() < SyncCheckImm::kMostRegions;) {
      node = node->getIDom();
      BasicBlock* const block = node ? node->getBlock() : nullptr;
      if (!block) break;
      if (!DoesSomething(*block)) continue;
      const bool outside = loop && !loop->contains(block);
      if (!outside && (!here || dominators_.dominates(&from, block))) continue;
      while (loop && !loop->contains(block)) loop = loop->getParentLoop();
      here = false;
      if (Region* const region = RegionAt(*block)) {
        imm.regions[found.size()] = region->number;
        found.push_back(region);
      }
    }
    return found;
  }

  /// Null when there are too many.
  Region* RegionAt(BasicBlock& block) {
    if (regions_.size() == std::numeric_limits<std::uint16_t>::max()) return nullptr;
    std::unique_ptr<Region>& region = regions_[&block];
    if (!region) {
      region = std::make_unique<Region>();
      region->number = static_cast<std::uint16_t>(regions_.size());
    }
    return region.get();
  }

  SpmdModule& spmd_;
  llvm::Function& function_;
  llvm::DominatorTree dominators_;
  llvm::PostDominatorTree post_dominators_;
  llvm::LoopInfo loops_;
  llvm::MapVector<BasicBlock*, std::unique_ptr<Region>> regions_;
  std::vector<Sync> syncs_;
};

}  // namespace

void PlaceSyncChecks(SpmdModule& spmd) {
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : spmd.ir()) {
    if (!function.isDeclaration()) functions.push_back(&function);
  }
  for (llvm::Function* function : functions) Placer(spmd, *function).Run();
}

}  // namespace gridloom::exec
