#include "sim/exec/compiler/promote_registers.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <vector>

namespace gridloom::exec {

void PromoteRegisters(llvm::Function& function) {
  std::vector<llvm::AllocaInst*> slots;
  for (llvm::Instruction& instruction : function.getEntryBlock()) {
    auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
    if (slot && llvm::isAllocaPromotable(slot)) slots.push_back(slot);
  }
  if (slots.empty()) return;
  llvm::DominatorTree tree(function);
  llvm::PromoteMemToReg(slots, tree);
}

}  // namespace gridloom::exec
