#include "sim/exec/compiler/promote_registers.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/CFG.h>
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

/// The reads and writes of a register's slot. Every slot is written once at the function's beginning, with zero, whatever else is.
struct Accesses {
  explicit Accesses(llvm::AllocaInst& slot) {
    for (llvm::User* user : slot.users()) {
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(user)) loads.push_back(load);
      else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(user)) stores.push_back(store);
      else others = true;
    }
  }

  llvm::SmallVector<llvm::LoadInst*, 8> loads;
  llvm::SmallVector<llvm::StoreInst*, 4> stores;
  bool others = false;
};

/// What compilers make has most registers written in one place, before all reads: they need no search for places of phis.
bool PromoteWrittenOnce(llvm::AllocaInst& slot, const Accesses& accesses, const llvm::DominatorTree& tree) {
  if (accesses.others || accesses.stores.empty() || accesses.stores.size() > 2) return false;
  llvm::StoreInst* first = accesses.stores.front();
  llvm::StoreInst* last = accesses.stores.back();
  if (first != last && !tree.dominates(first, last)) std::swap(first, last);
  if (first != last && !tree.dominates(first, last)) return false;
  if (!tree.isReachableFromEntry(last->getParent())) return false;  // it may write what it reads
  if (!llvm::all_of(accesses.loads, [&](const llvm::LoadInst* load) { return tree.dominates(last, load); })) return false;
  llvm::Value* const value = last->getValueOperand();
  for (llvm::LoadInst* load : accesses.loads) {
    load->replaceAllUsesWith(value);
    load->eraseFromParent();
  }
  for (llvm::StoreInst* store : accesses.stores) store->eraseFromParent();
  slot.eraseFromParent();
  return true;
}

/// Takes away the zero that a slot begins with where no read sees it: without, places of phis are searched behind the other writes only,
/// and not in the whole function. Whether there is none now.
bool DropUnreadZero(const llvm::BasicBlock& entry, const Accesses& accesses) {
  llvm::StoreInst* zero = nullptr;
  for (llvm::StoreInst* store : accesses.stores)
    if (store->getParent() == &entry && (!zero || store->comesBefore(zero))) zero = store;
  llvm::DenseMap<const llvm::BasicBlock*, const llvm::StoreInst*> writes;  // the first one of a block
  for (const llvm::StoreInst* store : accesses.stores) {
    if (store == zero) continue;
    const llvm::StoreInst*& first = writes[store->getParent()];
    if (!first || store->comesBefore(first)) first = store;
  }
  llvm::SmallVector<const llvm::BasicBlock*, 16> reading;  // what was written before them
  llvm::SmallPtrSet<const llvm::BasicBlock*, 16> seen;
  for (const llvm::LoadInst* load : accesses.loads) {
    const llvm::StoreInst* write = writes.lookup(load->getParent());
    if ((!write || load->comesBefore(write)) && seen.insert(load->getParent()).second) reading.push_back(load->getParent());
  }
  while (!reading.empty()) {
    const llvm::BasicBlock* const block = reading.pop_back_val();
    if (block == &entry) return false;
    for (const llvm::BasicBlock* before : llvm::predecessors(block))
      if (!writes.contains(before) && seen.insert(before).second) reading.push_back(before);
  }
  if (zero) zero->eraseFromParent();
  return true;
}

}  // namespace

Promotion PromoteRegisters(llvm::Function& function) {
  Promotion promotion;
  std::vector<llvm::AllocaInst*> slots;
  for (llvm::Instruction& instruction : function.getEntryBlock()) {
    auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
    if (slot && llvm::isAllocaPromotable(slot)) slots.push_back(slot);
  }
  if (slots.empty()) return promotion;
  llvm::DominatorTree tree(function);
  tree.updateDFSNumbers();
  promotion.without_search = slots.size();
  llvm::erase_if(slots, [&](llvm::AllocaInst* slot) { return PromoteWrittenOnce(*slot, Accesses(*slot), tree); });
  promotion.without_search -= slots.size();
  promotion.searched = slots.size();
  if (slots.empty()) return promotion;
  for (llvm::AllocaInst* slot : slots) promotion.from_beginning += DropUnreadZero(function.getEntryBlock(), Accesses(*slot)) ? 0 : 1;
  // Whether a register is live at the beginning of a block with accesses to it is found by looking at its instructions, one register after
  // the other: of one block with many thousand instructions and registers that takes seconds.
  const std::vector<llvm::BasicBlock*> pieces = CutLongBlocks(function);
  if (!pieces.empty()) tree.recalculate(function);
  llvm::PromoteMemToReg(slots, tree);
  // In their order: what is merged is moved, and so each piece is moved once.
  for (llvm::BasicBlock* const piece : pieces) llvm::MergeBlockIntoPredecessor(piece);
  return promotion;
}

void PromoteRegistersOfLongBlocks(llvm::Module& module) {
  constexpr std::size_t kLong = 8 * kPiece;
  for (llvm::Function& function : module) {
    if (std::ranges::any_of(function, [](const llvm::BasicBlock& block) { return block.size() > kLong; })) PromoteRegisters(function);
  }
}

}  // namespace gridloom::exec
