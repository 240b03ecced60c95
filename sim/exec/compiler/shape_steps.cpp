// Lanes of a warp that are apart: which blocks part of them may reach alone, and which blocks groups of them may run at
// different times because one waits at a meeting (meetings.h) while the other runs on.
#include <llvm/ADT/MapVector.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>

#include "sim/exec/compiler/shape.h"

namespace gridloom::exec {

/// `block` and what comes after it, loops around it included.
ShapeAnalysis::BlockSet ShapeAnalysis::ReachableFrom(const llvm::BasicBlock* block) {
  BlockSet seen{block};
  std::vector<const llvm::BasicBlock*> left{block};
  while (!left.empty()) {
    const llvm::BasicBlock* at = left.back();
    left.pop_back();
    for (const llvm::BasicBlock* next : llvm::successors(at)) {
      if (seen.insert(next).second) left.push_back(next);
    }
  }
  return seen;
}

bool ShapeAnalysis::MayLackLanes(const llvm::BasicBlock* block) const {
  if (divergent_region_.contains(block) || out_of_step_.contains(block)) return true;
  const auto around = [&](const llvm::Loop* left) { return left->contains(block); };
  if (std::any_of(left_loops_.begin(), left_loops_.end(), around)) return true;
  if (lockstep_) return false;
  // Behind a loop in which lanes spin, or a barrier at which they park, groups come one by one.
  const auto behind = [&](const llvm::BasicBlock* hold) { return ReachableFrom(hold).contains(block); };
  if (std::any_of(waiting_loops_.begin(), waiting_loops_.end(),
                  [&](const llvm::Loop* loop) { return behind(loop->getHeader()); }))
    return true;
  return waiting_loops_.empty() && std::any_of(divergent_region_.begin(), divergent_region_.end(), behind);
}

// Lanes that arrive at a meeting together wait and go on together, unless each brings its own member mask. So what they
// run is out of step with those only that went another way before, and only where both ways lead: at a divergent branch
// before the meeting, which is on one side of it or in a loop that lanes leave there, what follows the meeting and what
// the other side leads to have in common.
bool ShapeAnalysis::FindOutOfStep() {
  llvm::MapVector<const llvm::BasicBlock*, bool> meetings;  // whether each lane brings its own mask
  for (const llvm::BasicBlock* block : order_.blocks) {
    for (const llvm::Instruction& instruction : *block) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd_.Find(call->getCalledFunction()) : nullptr;
      if (info && info->kind == MarkerKind::kMeet) meetings[block] |= !Of(call->getArgOperand(0)).uniform();
    }
  }
  if (meetings.empty()) return false;
  llvm::DenseMap<const llvm::BasicBlock*, BlockSet> reachable;
  const auto reach = [&](const llvm::BasicBlock* from) -> const BlockSet& {
    const auto it = reachable.find(from);
    return it != reachable.end() ? it->second : reachable[from] = ReachableFrom(from);
  };
  const auto behind = [](const llvm::BasicBlock* meeting) { return meeting->getSingleSuccessor(); };
  for (const auto& [meeting, own_masks] : meetings) {
    if (own_masks) out_of_step_.insert(reach(behind(meeting)).begin(), reach(behind(meeting)).end());
  }
  for (const llvm::Instruction* branch : divergent_branches_) {
    const Spread spread = SpreadFrom(branch->getParent());
    const BlockSet region(spread.region.begin(), spread.region.end());
    for (const auto& [meeting, own_masks] : meetings) {
      const llvm::BasicBlock* at = meeting;
      if (!region.contains(at) &&
          std::none_of(spread.left.begin(), spread.left.end(), [&](auto* loop) { return loop->contains(at); }))
        continue;
      for (const unsigned side : {0u, 1u}) {
        if (!reach(branch->getSuccessor(side)).contains(at)) continue;
        const BlockSet other = reach(branch->getSuccessor(1 - side));
        for (const llvm::BasicBlock* block : reach(behind(at))) {
          if (other.contains(block)) out_of_step_.insert(block);
        }
      }
    }
  }
  return !out_of_step_.empty();
}

}  // namespace gridloom::exec
