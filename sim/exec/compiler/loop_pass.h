// What passes over the loops of an SPMD function look at: which loops there are, and how values go on from round to
// round.
#pragma once

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

class LoopPass {
 protected:
  /// Terms of an expression above which it is not computed before a loop.
  static constexpr unsigned kMostTerms = 24;

  /// `name`: of the values that are computed.
  LoopPass(SpmdModule& spmd, llvm::Function& function, const char* name)
      : spmd_(spmd),
        library_impl_(llvm::Triple(spmd.ir().getTargetTriple())),
        library_(library_impl_),
        assumptions_(function),
        dominators_(function),
        loops_(dominators_),
        evolution_(function, library_, assumptions_, dominators_, loops_),
        expander_(evolution_, spmd.ir().getDataLayout(), name) {}
  LoopPass(const LoopPass&) = delete;
  LoopPass& operator=(const LoopPass&) = delete;

  const MarkerInfo* MarkerOf(const llvm::Instruction& instruction) const {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    return call && call->getCalledFunction() ? spmd_.Find(call->getCalledFunction()) : nullptr;
  }

  SpmdModule& spmd_;
  llvm::TargetLibraryInfoImpl library_impl_;
  llvm::TargetLibraryInfo library_;
  llvm::AssumptionCache assumptions_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  llvm::ScalarEvolution evolution_;
  mutable llvm::SCEVExpander expander_;
};

}  // namespace gridloom::exec
