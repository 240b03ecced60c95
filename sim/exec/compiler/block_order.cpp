#include "sim/exec/compiler/block_order.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/CFG.h>

#include <algorithm>

namespace gridloom::exec {
namespace {

// Post order of one region (a loop's body or the whole function) in which each inner loop is one node: its blocks are
// emitted together when the node is. Successors outside the region are ignored.
class RegionOrder {
 public:
  RegionOrder(llvm::LoopInfo& loops, std::vector<llvm::BasicBlock*>& out) : loops_(loops), out_(out) {}

  void Emit(const llvm::Loop* region, llvm::BasicBlock* entry) {
    std::vector<llvm::BasicBlock*> nodes;  // representatives in post order: a block, or an inner loop's header
    llvm::DenseSet<llvm::BasicBlock*> seen;
    Visit(region, entry, entry, seen, nodes);
    llvm::BasicBlock* latch = region ? region->getLoopLatch() : nullptr;
    // The latch ends the loop even where another block (an exiting branch taken rarely) would come after it.
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      if (*it != latch || nodes.size() == 1) EmitNode(region, *it);
    }
    if (latch && nodes.size() > 1) EmitNode(region, latch);
  }

 private:
  // The loop directly inside `region` that contains `block`, or null when block belongs to region itself.
  const llvm::Loop* ChildLoop(const llvm::Loop* region, llvm::BasicBlock* block) const {
    const llvm::Loop* loop = loops_.getLoopFor(block);
    if (loop == region) return nullptr;
    while (loop && loop->getParentLoop() != region) loop = loop->getParentLoop();
    return loop;
  }

  void EmitNode(const llvm::Loop* region, llvm::BasicBlock* node) {
    if (const llvm::Loop* child = ChildLoop(region, node)) {
      Emit(child, child->getHeader());
    } else {
      out_.push_back(node);
    }
  }

  void Successors(const llvm::Loop* region, llvm::BasicBlock* node,
                  llvm::SmallVectorImpl<llvm::BasicBlock*>& next) const {
    if (const llvm::Loop* child = ChildLoop(region, node)) {
      child->getExitBlocks(next);
    } else {
      next.append(llvm::succ_begin(node), llvm::succ_end(node));
    }
  }

  // Iterative depth-first walk: a kernel may have thousands of blocks in a chain.
  void Visit(const llvm::Loop* region, llvm::BasicBlock* entry, llvm::BasicBlock* header,
             llvm::DenseSet<llvm::BasicBlock*>& seen, std::vector<llvm::BasicBlock*>& nodes) {
    struct Frame {
      llvm::BasicBlock* node;
      llvm::SmallVector<llvm::BasicBlock*, 4> next;
    };
    std::vector<Frame> stack;
    const auto push = [&](llvm::BasicBlock* node) {
      if (!seen.insert(node).second) return;
      stack.push_back({node, {}});
      Successors(region, node, stack.back().next);
    };
    push(entry);
    while (!stack.empty()) {
      if (stack.back().next.empty()) {
        nodes.push_back(stack.back().node);
        stack.pop_back();
        continue;
      }
      llvm::BasicBlock* target = stack.back().next.pop_back_val();
      if (region && !region->contains(target)) continue;
      if (target == header) continue;
      if (const llvm::Loop* child = ChildLoop(region, target)) target = child->getHeader();
      push(target);
    }
  }

  llvm::LoopInfo& loops_;
  std::vector<llvm::BasicBlock*>& out_;
};

}  // namespace

BlockOrder ComputeBlockOrder(llvm::Function& function, llvm::LoopInfo& loops) {
  BlockOrder order;
  RegionOrder(loops, order.blocks).Emit(nullptr, &function.getEntryBlock());
  for (unsigned i = 0; i < order.blocks.size(); ++i) order.index[order.blocks[i]] = i;
  return order;
}

}  // namespace gridloom::exec
