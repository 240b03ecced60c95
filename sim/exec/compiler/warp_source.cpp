// What is known of a function before it is vectorised.

#include "sim/exec/compiler/warp_source.h"

#include <llvm/IR/CFG.h>

namespace gridloom::exec {

using llvm::BasicBlock;

WarpSource::WarpSource(WarpModule& module, llvm::Function& function, bool is_kernel)
    : module(module),
      function(function),
      is_kernel(is_kernel),
      dominators(function),
      loops(dominators),
      order(ComputeBlockOrder(function, loops)),
      shapes(function, module.spmd, loops, order, module.options) {
  for (BasicBlock* block : order.blocks) {
    for (llvm::Instruction& instruction : *block) {
      const MarkerInfo* info = module.MarkerOf(instruction);
      barriers += info && info->kind == MarkerKind::kBarrier ? 1 : 0;
      if (info && info->kind == MarkerKind::kMeet) met_blocks.insert(block->getSingleSuccessor());
    }
  }
}

/// `instruction` can neither wait for other lanes nor end threads.
bool WarpSource::RunsThrough(const llvm::Instruction& instruction) const {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (!call || (call->getCalledFunction() && call->getCalledFunction()->isIntrinsic())) return true;
  const MarkerInfo* info = module.MarkerOf(instruction);
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

/// True when lanes that have left `loop`, or never entered it, are the only ones off at its latch: nothing in it waits
/// or ends threads.
bool WarpSource::RunsTogether(const llvm::Loop& loop) const {
  if (!shapes.InStep(loop.getHeader())) return false;
  return llvm::all_of(loop.blocks(), [&](const BasicBlock* block) {
    return llvm::all_of(*block, [&](const llvm::Instruction& instruction) { return RunsThrough(instruction); });
  });
}

llvm::SmallPtrSet<const BasicBlock*, 16> BlocksThatNeed(const llvm::Instruction& value) {
  llvm::SmallPtrSet<const BasicBlock*, 16> needed;
  llvm::SmallVector<const BasicBlock*, 16> look;
  for (const llvm::Use& use : value.uses()) {
    const auto* user = llvm::cast<llvm::Instruction>(use.getUser());
    const auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
    const BasicBlock* block = phi ? phi->getIncomingBlock(use) : user->getParent();
    if (block != value.getParent()) look.push_back(block);
  }
  while (!look.empty()) {
    const BasicBlock* block = look.pop_back_val();
    if (!needed.insert(block).second) continue;
    for (const BasicBlock* before : llvm::predecessors(block))
      if (before != value.getParent()) look.push_back(before);
  }
  return needed;
}

bool UsedOutside(const llvm::Instruction& instruction) {
  for (const llvm::User* user : instruction.users()) {
    const auto* at = llvm::cast<llvm::Instruction>(user);
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(at)) {
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        if (phi->getIncomingValue(i) == &instruction && phi->getIncomingBlock(i) != instruction.getParent())
          return true;
      }
    } else if (at->getParent() != instruction.getParent()) {
      return true;
    }
  }
  return false;
}

}  // namespace gridloom::exec
