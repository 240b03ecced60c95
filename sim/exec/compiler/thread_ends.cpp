#include "sim/exec/compiler/thread_ends.h"

#include <llvm/IR/InstIterator.h>

namespace gridloom::exec {

// Grows the set until it stays the same: call graphs are small and may have circles.
ThreadEnds::ThreadEnds(SpmdModule& spmd, const AddressTaken& address_taken) : spmd_(spmd) {
  const auto ends = [&](const llvm::Function& function) {
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (!call || !call->getCalledFunction()) continue;
      const MarkerInfo* info = spmd.Find(call->getCalledFunction());
      if ((info && info->kind == MarkerKind::kExit) || MayEndIn(*call)) return true;
    }
    return false;
  };
  for (bool grows = true; grows;) {
    grows = false;
    for (const llvm::Function& function : spmd.ir()) {
      if (function.isDeclaration() || functions_.contains(&function) || !ends(function)) continue;
      functions_.insert(&function);
      grows = true;
      for (const auto& [number, target] : address_taken) indirect_ |= target == &function;
    }
  }
}

bool ThreadEnds::MayEndIn(const llvm::CallInst& call) const {
  const llvm::Function* callee = call.getCalledFunction();
  if (!callee) return false;
  const MarkerInfo* info = spmd_.Find(callee);
  return info ? info->kind == MarkerKind::kIndirectCall && indirect_ : functions_.contains(callee);
}

}  // namespace gridloom::exec
