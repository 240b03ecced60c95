// The function that is vectorised, and what is known of it before code is emitted.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>

#include "sim/exec/compiler/block_order.h"
#include "sim/exec/compiler/shape.h"
#include "sim/exec/compiler/warp_module.h"

namespace gridloom::exec {

struct WarpSource {
  WarpSource(WarpModule& module, llvm::Function& function, bool is_kernel);
  WarpSource(const WarpSource&) = delete;
  WarpSource& operator=(const WarpSource&) = delete;

  bool RunsByCta() const { return is_kernel && module.by_cta; }
  bool RunsThrough(const llvm::Instruction& instruction) const;
  bool RunsTogether(const llvm::Loop& loop) const;

  WarpModule& module;
  llvm::Function& function;
  bool is_kernel;
  llvm::DominatorTree dominators;
  llvm::LoopInfo loops;
  BlockOrder order;
  ShapeAnalysis shapes;
  unsigned barriers = 0;                               ///< instructions
  llvm::DenseSet<const llvm::BasicBlock*> met_blocks;  ///< those that follow a meeting
};

/// The blocks at whose beginning `value` is needed by what follows.
llvm::SmallPtrSet<const llvm::BasicBlock*, 16> BlocksThatNeed(const llvm::Instruction& value);

/// Whether other blocks use what `instruction` gives.
bool UsedOutside(const llvm::Instruction& instruction);

}  // namespace gridloom::exec
