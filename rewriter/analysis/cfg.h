// Control flow graph of a PTX function. Nested blocks are flattened; the statements themselves stay where they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rewriter/analysis/graph.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::analysis {

/// A basic block; its number is its node in Cfg::graph().
using BlockId = NodeId;
inline constexpr BlockId kNoBlock = kNoNode;

/// An instruction and where it stands: `scope->statements[statement]`.
struct CfgInstruction {
  const ptx::Instruction* instruction = nullptr;
  const ptx::Block* scope = nullptr;
  std::uint32_t statement = 0;
  BlockId block = kNoBlock;
};

/// How the last instruction of a block ends it. Under a guard the block may also go on to `next`.
enum class BlockEnd : std::uint8_t {
  kFallthrough,   ///< the next instruction is a branch target
  kBranch,        ///< bra
  kIndirect,      ///< brx.idx
  kExit,          ///< exit: the thread ends, in functions too
  kReturn,        ///< ret; of a kernel, the thread ends. Also the end of the body
  kTrap,          ///< trap: the grid ends
  kNoReturnCall,  ///< call of a function that is declared .noreturn
};

struct BasicBlock {
  std::uint32_t first = 0, count = 0;  ///< instructions, in Cfg::instructions(); none in an empty function
  BlockEnd end = BlockEnd::kFallthrough;
  bool guarded_end = false;         ///< the last instruction has a guard
  BlockId next = kNoBlock;          ///< where it goes on when the end is not taken
  std::vector<BlockId> taken = {};  ///< targets of the branch
};

/// Built of a function with a body, which must outlive it and not change. Block 0 is the entry. Blocks stand in source
/// order; those that cannot be reached are kept.
class Cfg {
 public:
  explicit Cfg(const ptx::Function& function);

  const ptx::Function& function() const { return *function_; }
  const std::vector<CfgInstruction>& instructions() const { return instructions_; }
  const std::vector<BasicBlock>& blocks() const { return blocks_; }
  std::span<const CfgInstruction> Instructions(BlockId block) const {
    return std::span(instructions_).subspan(blocks_[block].first, blocks_[block].count);
  }
  /// Edges without duplicates: `next` first, then `taken` in their order.
  const Graph& graph() const { return graph_; }
  /// Whether a thread can leave the function at the end of this block: exit, ret, trap, a call that does not return.
  bool Leaves(BlockId block) const;
  /// Blocks that leave although they have successors: the end has a guard.
  std::vector<BlockId> GuardedLeaves() const;
  /// A branch goes where this graph does not know: an undeclared label or list of targets.
  const ptx::Instruction* unresolved_branch() const { return unresolved_branch_; }

 private:
  void Flatten();
  void AddEdges();
  std::vector<BlockId> Targets(const ptx::Instruction& branch);

  struct LabelPlace {
    const ptx::Label* label;
    std::uint32_t instruction;  ///< the first one after the label
  };

  const ptx::Function* function_;
  std::vector<CfgInstruction> instructions_;
  std::vector<BasicBlock> blocks_;
  std::vector<LabelPlace> labels_;  ///< sorted by label
  Graph graph_;
  const ptx::Instruction* unresolved_branch_ = nullptr;
};

/// The declared callee of a direct call, null for an indirect call and for other instructions.
const ptx::Function* CalleeOf(const ptx::Instruction& instruction);
/// The operand of a call that says what is called: a function, or a register that holds its address. Null when there is
/// none (malformed) and for other instructions.
const ptx::Operand* CallTargetOf(const ptx::Instruction& instruction);

}  // namespace gridloom::analysis
