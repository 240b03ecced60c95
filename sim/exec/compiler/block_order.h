// Execution order of a function's blocks, the base of reconvergence (docs/design/executor.md): topological over forward
// edges, every loop contiguous, its single latch last. Needs FixIrreducible and LoopSimplify form.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>

#include <vector>

namespace gridloom::exec {

struct BlockOrder {
  std::vector<llvm::BasicBlock*> blocks;
  llvm::DenseMap<const llvm::BasicBlock*, unsigned> index;

  unsigned IndexOf(const llvm::BasicBlock* block) const { return index.lookup(block); }
  /// An edge that goes back in the order: always latch -> header.
  bool IsBackEdge(const llvm::BasicBlock* from, const llvm::BasicBlock* to) const {
    return IndexOf(to) <= IndexOf(from);
  }
};

BlockOrder ComputeBlockOrder(llvm::Function& function, llvm::LoopInfo& loops);

}  // namespace gridloom::exec
