#include "rewriter/analysis/cfg.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace gridloom::analysis {
namespace {

using ptx::Instruction;
using ptx::Trait;

/// How an instruction ends its block; nothing when control goes on to the next instruction.
std::optional<BlockEnd> EndOf(const Instruction& instruction) {
  if (instruction.Has(Trait::kIndirect)) return BlockEnd::kIndirect;
  if (instruction.Has(Trait::kBranches)) return BlockEnd::kBranch;
  if (instruction.Has(Trait::kExits)) return BlockEnd::kExit;
  if (instruction.Has(Trait::kReturns)) return BlockEnd::kReturn;
  if (instruction.Has(Trait::kFaults)) return BlockEnd::kTrap;
  const ptx::Function* callee = CalleeOf(instruction);
  if (callee != nullptr && callee->noreturn) return BlockEnd::kNoReturnCall;
  return std::nullopt;
}

}  // namespace

const ptx::Operand* CallTargetOf(const Instruction& instruction) {
  if (!instruction.Has(Trait::kCalls)) return nullptr;
  // call (results), function, (arguments), targets
  const auto it = std::find_if(instruction.operands.begin(), instruction.operands.end(),
                               [](const ptx::Operand& operand) { return operand.kind != ptx::OperandKind::kList; });
  return it == instruction.operands.end() ? nullptr : &*it;
}

const ptx::Function* CalleeOf(const Instruction& instruction) {
  const ptx::Operand* target = CallTargetOf(instruction);
  return target != nullptr && target->kind == ptx::OperandKind::kSymbol ? target->function : nullptr;
}

Cfg::Cfg(const ptx::Function& function) : function_(&function) {
  Flatten();
  // A block begins at the entry, at each label and after each end.
  std::vector<bool> begins(instructions_.size() + 1, false);
  begins[0] = true;
  for (const LabelPlace& place : labels_) begins[place.instruction] = true;
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (EndOf(*instructions_[i].instruction)) begins[i + 1] = true;
  }
  for (std::uint32_t i = 0; i < instructions_.size(); ++i) {
    if (begins[i]) blocks_.push_back({.first = i});
    ++blocks_.back().count;
    instructions_[i].block = static_cast<BlockId>(blocks_.size() - 1);
  }
  // A label at the very end of the body is a block of its own, which returns.
  const bool label_at_end = std::any_of(labels_.begin(), labels_.end(),
                                        [&](const LabelPlace& p) { return p.instruction == instructions_.size(); });
  if (label_at_end || blocks_.empty()) blocks_.push_back({.first = static_cast<std::uint32_t>(instructions_.size())});
  AddEdges();
}

void Cfg::Flatten() {
  struct Position {
    const ptx::Block* block;
    std::uint32_t next = 0;
  };
  std::vector<Position> stack;
  if (function_->body) stack.push_back({function_->body.get()});
  while (!stack.empty()) {
    Position& at = stack.back();
    if (at.next == at.block->statements.size()) {
      stack.pop_back();
      continue;
    }
    const std::uint32_t index = at.next++;
    const ptx::Statement& statement = at.block->statements[index];
    if (const auto* instruction = std::get_if<Instruction>(&statement)) {
      instructions_.push_back({instruction, at.block, index});
    } else if (auto* label = std::get_if<ptx::Label*>(&statement)) {
      labels_.push_back({*label, static_cast<std::uint32_t>(instructions_.size())});
    } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      stack.push_back({nested->get()});
    }
  }
  std::sort(labels_.begin(), labels_.end(),
            [](const LabelPlace& a, const LabelPlace& b) { return std::less<>()(a.label, b.label); });
}

std::vector<BlockId> Cfg::Targets(const Instruction& branch) {
  std::vector<BlockId> targets;
  const auto add = [&](const ptx::Operand& operand) {
    const auto it = std::lower_bound(
        labels_.begin(), labels_.end(), operand.label,
        [](const LabelPlace& place, const ptx::Label* label) { return std::less<>()(place.label, label); });
    if (operand.label == nullptr || it == labels_.end() || it->label != operand.label) {
      unresolved_branch_ = &branch;
    } else {
      targets.push_back(it->instruction == instructions_.size() ? static_cast<BlockId>(blocks_.size() - 1)
                                                                : instructions_[it->instruction].block);
    }
  };
  for (const ptx::Operand& operand : branch.operands) {
    if (operand.kind == ptx::OperandKind::kLabel ||
        (!branch.Has(Trait::kIndirect) && operand.kind == ptx::OperandKind::kName)) {
      add(operand);
    } else if (operand.directive != nullptr) {
      for (const ptx::Operand& target : operand.directive->targets) add(target);
    }
  }
  if (targets.empty()) unresolved_branch_ = &branch;
  return targets;
}

void Cfg::AddEdges() {
  graph_ = Graph(blocks_.size());
  std::vector<BlockId> seen(blocks_.size(), kNoBlock);
  for (BlockId id = 0; id < blocks_.size(); ++id) {
    BasicBlock& block = blocks_[id];
    const Instruction* last = block.count == 0 ? nullptr : instructions_[block.first + block.count - 1].instruction;
    const auto end = last == nullptr ? std::nullopt : EndOf(*last);
    block.end = end.value_or(BlockEnd::kFallthrough);
    block.guarded_end = end && last->guard.has_value();
    if (end == BlockEnd::kBranch || end == BlockEnd::kIndirect) block.taken = Targets(*last);
    if (!end || block.guarded_end) {
      // The end of the body returns (ISA 9.7.12.6 asks for a ret, older compilers leave it out).
      if (id + 1 < blocks_.size()) {
        block.next = id + 1;
      } else if (!end) {
        block.end = BlockEnd::kReturn;
      }
    }
    const auto connect = [&](BlockId to) {
      if (to == kNoBlock || seen[to] == id) return;
      seen[to] = id;
      graph_.AddEdge(id, to);
    };
    connect(block.next);
    for (const BlockId to : block.taken) connect(to);
  }
}

bool Cfg::Leaves(BlockId block) const {
  switch (blocks_[block].end) {
    case BlockEnd::kFallthrough:
    case BlockEnd::kBranch:
    case BlockEnd::kIndirect:
      // A guarded branch at the very end of the body falls off it.
      return graph_.successors[block].empty() || (blocks_[block].guarded_end && blocks_[block].next == kNoBlock);
    default: return true;
  }
}

std::vector<BlockId> Cfg::GuardedLeaves() const {
  std::vector<BlockId> leaves;
  for (BlockId id = 0; id < blocks_.size(); ++id) {
    if (Leaves(id) && !graph_.successors[id].empty()) leaves.push_back(id);
  }
  return leaves;
}

}  // namespace gridloom::analysis
