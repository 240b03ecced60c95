#include "sim/exec/compiler/promote_registers.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <vector>

namespace gridloom::exec {
namespace {

constexpr std::size_t kPiece = 512;  // instructions

/// Cuts long blocks; the later pieces of each, in their order. What is cut off is moved, so the last piece is cut off first.
std::vector<llvm::BasicBlock*> CutLongBlocks(llvm::Function& function) {
  std::vector<llvm::BasicBlock*> blocks, pieces;
  for (llvm::BasicBlock& block : function)
    if (block.size() > 2 * kPiece) blocks.push_back(&block);
  for (llvm::BasicBlock* const block : blocks) {
    std::vector<llvm::Instruction*> cuts;
    std::size_t number = 0;
    for (llvm::Instruction& instruction : *block)
      if (++number % kPiece == 0 && !llvm::isa<llvm::PHINode>(instruction) && !llvm::isa<llvm::AllocaInst>(instruction))
        cuts.push_back(&instruction);
    const std::size_t first = pieces.size();
    for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) pieces.push_back(block->splitBasicBlock(*cut));
    std::reverse(pieces.begin() + static_cast<std::ptrdiff_t>(first), pieces.end());
  }
  return pieces;
}

}  // namespace

void PromoteRegisters(llvm::Function& function) {
  std::vector<llvm::AllocaInst*> slots;
  for (llvm::Instruction& instruction : function.getEntryBlock()) {
    auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
    if (slot && llvm::isAllocaPromotable(slot)) slots.push_back(slot);
  }
  if (slots.empty()) return;
  // Whether a register is live at the beginning of a block with accesses to it is found by looking at its instructions, one register after
  // the other: of one block with many thousand instructions and registers that takes seconds.
  const std::vector<llvm::BasicBlock*> pieces = CutLongBlocks(function);
  llvm::DominatorTree tree(function);
  llvm::PromoteMemToReg(slots, tree);
  // In their order: what is merged is moved, and so each piece is moved once.
  for (llvm::BasicBlock* const piece : pieces) llvm::MergeBlockIntoPredecessor(piece);
}

void PromoteRegistersOfLongBlocks(llvm::Module& module) {
  constexpr std::size_t kLong = 8 * kPiece;
  for (llvm::Function& function : module) {
    if (std::ranges::any_of(function, [](const llvm::BasicBlock& block) { return block.size() > kLong; })) PromoteRegisters(function);
  }
}

}  // namespace gridloom::exec
