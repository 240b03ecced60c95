#include "sim/exec/compiler/compare_and_swap.h"

#include <llvm/ADT/SetVector.h>

namespace gridloom::exec {

bool BeginsCompareAndSwap(const llvm::CallInst& load, const SpmdModule& spmd) {
  constexpr unsigned kMost = 64;  // values that are looked at
  llvm::SmallSetVector<const llvm::Value*, 8> values;
  values.insert(&load);
  for (unsigned i = 0; i < values.size() && i < kMost; ++i) {
    for (const llvm::User* user : values[i]->users()) {
      if (llvm::isa<llvm::PHINode, llvm::CastInst, llvm::SelectInst, llvm::FreezeInst, llvm::ExtractValueInst>(user))
        values.insert(user);
      const auto* call = llvm::dyn_cast<llvm::CallInst>(user);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
      if (info && info->kind == MarkerKind::kAtomic && static_cast<AtomicOp>(info->imm & 0xff) == AtomicOp::kCas)
        return true;
    }
  }
  return false;
}

}  // namespace gridloom::exec
