#include "sim/exec/compiler/promote_registers.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace gridloom::exec {
namespace {

constexpr std::size_t kLongBlock = 4096;  // instructions

/// The reads and writes of a register's slot. Every slot is written once at the function's beginning, with zero,
/// whatever else is.
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

/// What compilers make has most registers written in one place, before all reads: they need no search for places of
/// phis.
bool PromoteWrittenOnce(llvm::AllocaInst& slot, const Accesses& accesses, const llvm::DominatorTree& tree) {
  if (accesses.others || accesses.stores.empty() || accesses.stores.size() > 2) return false;
  llvm::StoreInst* first = accesses.stores.front();
  llvm::StoreInst* last = accesses.stores.back();
  if (first != last && !tree.dominates(first, last)) std::swap(first, last);
  if (first != last && !tree.dominates(first, last)) return false;
  if (!tree.isReachableFromEntry(last->getParent())) return false;  // it may write what it reads
  if (!llvm::all_of(accesses.loads, [&](const llvm::LoadInst* load) { return tree.dominates(last, load); }))
    return false;
  llvm::Value* const value = last->getValueOperand();
  for (llvm::LoadInst* load : accesses.loads) {
    load->replaceAllUsesWith(value);
    load->eraseFromParent();
  }
  for (llvm::StoreInst* store : accesses.stores) store->eraseFromParent();
  slot.eraseFromParent();
  return true;
}

/// Makes values of registers one by one. What one takes grows with the blocks that it is live in, and not with all
/// others: phis are placed in the iterated dominance frontier of its writes, which is looked for among the blocks where
/// it is live and those before them.
class Promoter {
 public:
  Promoter(llvm::Function& function, llvm::DominatorTree& tree, llvm::ArrayRef<llvm::AllocaInst*> slots)
      : function_(function), tree_(tree), slots_(slots.begin(), slots.end()) {
    for (llvm::BasicBlock& block : function) {
      numbers_[&block] = static_cast<Block>(blocks_.size());
      blocks_.push_back({&block, tree.getNode(&block), {}});
    }
    for (BlockInfo& info : blocks_)
      for (llvm::BasicBlock* before : llvm::predecessors(info.block)) info.before.push_back(numbers_.lookup(before));
    marks_.resize(blocks_.size());
    FindAccesses();
  }

  /// How many blocks were looked at.
  std::size_t Run() {
    for (std::size_t i = 0; i < slots_.size(); ++i) Promote(i);
    DropPhisOfOneValue();
    return looked_at_;
  }

 private:
  using Block = std::uint32_t;
  struct BlockInfo {
    llvm::BasicBlock* block;
    llvm::DomTreeNode* node;  ///< null: it cannot be reached
    llvm::SmallVector<Block, 2> before;
  };
  /// What is known of a block for the register that is being promoted, if `slot` is the register's number.
  struct Mark {
    std::size_t live = kNone, writes = kNone, phi = kNone, node = kNone, ends = kNone;
    std::uint32_t place = 0;  ///< in nodes_
    llvm::PHINode* value = nullptr;
    llvm::Value* end = nullptr;  ///< the register's value at the block's end
  };
  /// A block of the dominator tree without all blocks that do not matter.
  struct Node {
    Block block;
    bool walked = false;
    llvm::SmallVector<std::uint32_t, 4> children;
    llvm::SmallVector<Block, 2> joins;  ///< blocks behind it that may need a phi
  };
  struct Access {
    Block block;
    llvm::Instruction* instruction;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  bool IsReachable(Block block) const { return blocks_[block].node != nullptr; }
  unsigned LevelOf(Block block) const { return blocks_[block].node->getLevel(); }
  unsigned FirstOf(Block block) const { return blocks_[block].node->getDFSNumIn(); }
  unsigned LastOf(Block block) const { return blocks_[block].node->getDFSNumOut(); }

  /// Finds the accesses of all slots, in the order of blocks and instructions.
  void FindAccesses() {
    llvm::DenseMap<const llvm::Value*, std::size_t> of_slot;
    for (std::size_t i = 0; i < slots_.size(); ++i) of_slot[slots_[i]] = i;
    accesses_.resize(slots_.size());
    for (Block number = 0; number < blocks_.size(); ++number) {
      for (llvm::Instruction& instruction : *blocks_[number].block) {
        const auto found = of_slot.find(llvm::getLoadStorePointerOperand(&instruction));
        if (found != of_slot.end()) accesses_[found->second].push_back({number, &instruction});
      }
    }
  }

  void Promote(std::size_t slot) {
    slot_ = slot;
    std::vector<Access>& accesses = accesses_[slot];
    live_.clear();
    defs_.clear();
    FindLive(accesses);
    const std::vector<Block> phis = PlacesOfPhis();
    MakePhis(phis);
    GiveValues(accesses, phis);
    for (const Access& access : accesses) {
      if (!access.instruction->use_empty())
        access.instruction->replaceAllUsesWith(llvm::PoisonValue::get(access.instruction->getType()));
      access.instruction->eraseFromParent();
    }
    slots_[slot]->eraseFromParent();
  }

  /// The blocks at whose beginning the register is live, and those that write it.
  void FindLive(const std::vector<Access>& accesses) {
    std::vector<Block> reading;
    Block last = static_cast<Block>(blocks_.size());
    for (const Access& access : accesses) {
      if (!IsReachable(access.block)) continue;
      const bool first = std::exchange(last, access.block) != access.block;
      if (llvm::isa<llvm::StoreInst>(access.instruction)) {
        if (std::exchange(marks_[access.block].writes, slot_) != slot_) defs_.push_back(access.block);
      } else if (first) {
        reading.push_back(access.block);
      }
    }
    while (!reading.empty()) {
      const Block block = reading.back();
      reading.pop_back();
      if (std::exchange(marks_[block].live, slot_) == slot_) continue;
      live_.push_back(block);
      for (const Block before : blocks_[block].before)
        if (IsReachable(before) && marks_[before].writes != slot_) reading.push_back(before);
    }
    looked_at_ += live_.size() + defs_.size();
  }

  void AddNode(Block block) {
    if (std::exchange(marks_[block].node, slot_) == slot_) return;
    nodes_.push_back({block, false, {}, {}});
  }

  /// The dominator tree of the blocks that write, of those that may need a phi, and of what comes before these.
  void MakeTree() {
    nodes_.clear();
    for (const Block block : defs_) AddNode(block);
    for (const Block block : live_) {
      if (blocks_[block].before.size() < 2) continue;
      AddNode(block);
      for (const Block before : blocks_[block].before)
        if (IsReachable(before)) AddNode(before);
    }
    std::ranges::sort(nodes_, {}, [this](const Node& node) { return FirstOf(node.block); });
    std::vector<std::uint32_t> above;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const Block block = nodes_[i].block;
      marks_[block].place = i;
      while (!above.empty() && LastOf(nodes_[above.back()].block) < FirstOf(block)) above.pop_back();
      if (!above.empty()) nodes_[above.back()].children.push_back(i);
      above.push_back(i);
    }
    for (const Block block : live_) {
      if (blocks_[block].before.size() < 2) continue;
      for (const Block before : blocks_[block].before)
        if (IsReachable(before)) nodes_[marks_[before].place].joins.push_back(block);
    }
    looked_at_ += nodes_.size();
  }

  /// Sreedhar and Gao's search, from the writes that are deepest in the tree upwards, so that each of its nodes is
  /// walked through once.
  std::vector<Block> PlacesOfPhis() {
    std::vector<Block> phis;
    if (live_.empty() || defs_.empty()) return phis;
    MakeTree();
    using Root = std::pair<unsigned, Block>;
    std::priority_queue<Root> roots;
    for (const Block block : defs_) roots.emplace(LevelOf(block), block);
    std::vector<std::uint32_t> walk;
    while (!roots.empty()) {
      const auto [level, root] = roots.top();
      roots.pop();
      walk.assign(1, marks_[root].place);
      nodes_[walk.back()].walked = true;
      while (!walk.empty()) {
        const Node& node = nodes_[walk.back()];
        walk.pop_back();
        for (const Block join : node.joins) {
          if (LevelOf(join) > level || std::exchange(marks_[join].phi, slot_) == slot_) continue;
          phis.push_back(join);
          if (marks_[join].writes != slot_) roots.emplace(LevelOf(join), join);
        }
        for (const std::uint32_t child : node.children)
          if (!std::exchange(nodes_[child].walked, true)) walk.push_back(child);
      }
    }
    std::ranges::sort(phis);
    return phis;
  }

  void MakePhis(const std::vector<Block>& phis) {
    for (std::size_t i = 0; i < phis.size(); ++i) {
      const BlockInfo& info = blocks_[phis[i]];
      auto* const phi =
          llvm::PHINode::Create(slots_[slot_]->getAllocatedType(), static_cast<unsigned>(info.before.size()),
                                slots_[slot_]->getName() + "." + std::to_string(i));
      phi->insertBefore(*info.block, info.block->begin());
      marks_[phis[i]].value = phi;
      phis_.push_back(phi);
    }
  }

  /// Reads become values, and phis get theirs: the tree is gone through from its root, with the writes above the block.
  void GiveValues(const std::vector<Access>& accesses, const std::vector<Block>& phis) {
    struct Visit {
      unsigned first;
      Block block;
      std::size_t begin, end;  ///< accesses
    };
    std::vector<Visit> visits;
    const auto add = [&](Block block, std::size_t begin, std::size_t end) {
      if (IsReachable(block)) visits.push_back({FirstOf(block), block, begin, end});
    };
    for (std::size_t begin = 0, end = 0; begin < accesses.size(); begin = end) {
      while (end < accesses.size() && accesses[end].block == accesses[begin].block) ++end;
      add(accesses[begin].block, begin, end);
      marks_[accesses[begin].block].ends = slot_;
    }
    for (const Block phi : phis) {
      if (std::exchange(marks_[phi].ends, slot_) != slot_) add(phi, 0, 0);
      for (const Block before : blocks_[phi].before)
        if (std::exchange(marks_[before].ends, slot_) != slot_) add(before, 0, 0);
    }
    std::ranges::sort(visits, {}, &Visit::first);
    llvm::Value* const undefined = llvm::UndefValue::get(slots_[slot_]->getAllocatedType());
    std::vector<Block> above;
    for (const Visit& visit : visits) {
      while (!above.empty() && LastOf(above.back()) < visit.first) above.pop_back();
      Mark& mark = marks_[visit.block];
      llvm::Value* value = mark.phi == slot_ ? mark.value : above.empty() ? undefined : marks_[above.back()].end;
      for (std::size_t i = visit.begin; i < visit.end; ++i) {
        if (auto* store = llvm::dyn_cast<llvm::StoreInst>(accesses[i].instruction)) value = store->getValueOperand();
        else accesses[i].instruction->replaceAllUsesWith(value);
      }
      mark.end = value;
      above.push_back(visit.block);
    }
    for (const Block phi : phis)
      for (const Block before : blocks_[phi].before)
        marks_[phi].value->addIncoming(IsReachable(before) ? marks_[before].end : undefined, blocks_[before].block);
  }

  void DropPhisOfOneValue() {
    const llvm::SimplifyQuery query(function_.getParent()->getDataLayout(), nullptr, &tree_);
    for (bool dropped = true; std::exchange(dropped, false);) {
      for (llvm::PHINode*& phi : phis_) {
        llvm::Value* const value = llvm::simplifyInstruction(phi, query);
        if (!value) continue;
        phi->replaceAllUsesWith(value);
        phi->eraseFromParent();
        phi = nullptr;
        dropped = true;
      }
      std::erase(phis_, nullptr);
    }
  }

  llvm::Function& function_;
  llvm::DominatorTree& tree_;
  const std::vector<llvm::AllocaInst*> slots_;
  std::vector<BlockInfo> blocks_;
  llvm::DenseMap<const llvm::BasicBlock*, Block> numbers_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<llvm::PHINode*> phis_;
  std::size_t looked_at_ = 0;

  // What follows is about the register that is being promoted.
  std::size_t slot_ = kNone;
  std::vector<Mark> marks_;  ///< by block
  std::vector<Block> live_, defs_;
  std::vector<Node> nodes_;
};

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
  std::vector<llvm::AllocaInst*> others;  // with uses that are neither reads nor writes
  llvm::erase_if(slots, [&](llvm::AllocaInst* slot) {
    const bool other = Accesses(*slot).others;
    if (other) others.push_back(slot);
    return other;
  });
  if (!slots.empty()) promotion.looked_at = Promoter(function, tree, slots).Run();
  if (!others.empty()) llvm::PromoteMemToReg(others, tree);
  return promotion;
}

void PromoteRegistersOfLongBlocks(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (std::ranges::any_of(function, [](const llvm::BasicBlock& block) { return block.size() > kLongBlock; }))
      PromoteRegisters(function);
  }
}

}  // namespace gridloom::exec
