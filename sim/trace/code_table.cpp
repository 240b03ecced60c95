#include "sim/trace/code_table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <unordered_set>
#include <utility>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/liveness.h"
#include "rewriter/ptx/defuse.h"
#include "sim/exec/contract/layout.h"
#include "sim/trace/classify.h"
#include "sim/trace/meaning_builder.h"

namespace gridloom::trace {
namespace {

using analysis::RegisterId;

/// Physical numbers for a function's registers, from 0: linear scan over whole live ranges in source order.
class RegisterPacking {
 public:
  explicit RegisterPacking(const analysis::Cfg& cfg) : liveness_(cfg) {
    const auto size = liveness_.registers().size();
    first_.assign(size, ~0u);
    last_.assign(size, 0);
    FindRanges(cfg);
    Assign();
  }
  std::uint32_t count() const { return count_; }
  std::uint32_t Of(const ptx::Variable& variable, std::uint32_t index) const {
    const RegisterId id = liveness_.registers().Find(variable, index);
    return id == analysis::kNoRegister ? 0 : number_[id];
  }

 private:
  void Touch(RegisterId id, std::uint32_t at) {
    if (id == analysis::kNoRegister) return;
    first_[id] = std::min(first_[id], at);
    last_[id] = std::max(last_[id], at);
  }

  void FindRanges(const analysis::Cfg& cfg) {
    for (analysis::BlockId block = 0; block < cfg.blocks().size(); ++block) {
      const analysis::BasicBlock& range = cfg.blocks()[block];
      for (const RegisterId id : liveness_.LiveIn(block)) Touch(id, range.first);
      for (const RegisterId id : liveness_.LiveOut(block)) Touch(id, range.first + range.count);
    }
    const analysis::RegisterMap& registers = liveness_.registers();
    for (std::uint32_t i = 0; i < cfg.instructions().size(); ++i) {
      const ptx::Instruction& instruction = *cfg.instructions()[i].instruction;
      const auto touch = [&](const ptx::Operand& operand) {
        Touch(registers.Find(*operand.variable, operand.index), i);
      };
      ptx::VisitDefs(instruction, touch);
      ptx::VisitUses(instruction, touch);
      ptx::VisitGuard(instruction, [&](const ptx::Variable& variable, std::uint32_t index) {
        Touch(registers.Find(variable, index), i);
      });
    }
  }

  void Assign() {
    std::vector<RegisterId> order;
    for (RegisterId id = 0; id < first_.size(); ++id) {
      if (first_[id] != ~0u) order.push_back(id);
    }
    std::ranges::sort(order,
                      [&](RegisterId a, RegisterId b) { return std::pair(first_[a], a) < std::pair(first_[b], b); });
    using Ending = std::pair<std::uint32_t, std::uint32_t>;  // last use, number
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> active;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
    number_.assign(first_.size(), 0);
    for (const RegisterId id : order) {
      while (!active.empty() && active.top().first <= first_[id]) {
        free.push(active.top().second);
        active.pop();
      }
      if (free.empty()) free.push(count_++);
      number_[id] = free.top();
      free.pop();
      active.emplace(last_[id], number_[id]);
    }
  }

  const analysis::Liveness liveness_;
  std::vector<std::uint32_t> first_, last_, number_;
  std::uint32_t count_ = 0;
};

/// Registers that hold one constant from the only instruction that writes them on. Compilers put the numbers of named
/// barriers there.
class RegisterConstants {
 public:
  explicit RegisterConstants(const analysis::Cfg& cfg) {
    for (const auto& placed : cfg.instructions()) {
      ptx::VisitDefs(*placed.instruction, [&](const ptx::Operand& operand) {
        const auto [writer, first] = writers_.try_emplace({operand.variable, operand.index}, placed.instruction);
        if (!first) writer->second = nullptr;
      });
    }
  }
  std::optional<std::uint64_t> Of(const ptx::Operand& operand) const {
    const ptx::Operand* at = &operand;
    for (std::size_t moves = 0; moves <= writers_.size(); ++moves) {
      if (at->kind == ptx::OperandKind::kInt) return at->int_literal.value;
      if (at->kind != ptx::OperandKind::kRegister || at->element != 0) return std::nullopt;
      const auto writer = writers_.find({at->variable, at->index});
      if (writer == writers_.end() || writer->second == nullptr) return std::nullopt;
      const ptx::Instruction& instruction = *writer->second;
      if (instruction.info().cls != ptx::OpClass::kMove || instruction.guard || instruction.operands.size() != 2)
        return std::nullopt;
      at = &instruction.operands[1];
    }
    return std::nullopt;
  }

 private:
  std::map<std::pair<const ptx::Variable*, std::uint32_t>, const ptx::Instruction*> writers_;  // null: several
};

class Builder {
 public:
  Builder(const ptx::Module& module, const ptx::Function& kernel)
      : numbers_(exec::NumberInstructions(module, kernel)), calls_(module) {
    table_.code.name = std::string(kernel.name);
    table_.entries.resize(numbers_.instructions.size());
    const analysis::NodeId node = calls_.NodeOf(kernel);
    for (const analysis::NodeId reached : calls_.Reachable(node)) {
      const ptx::Function& function = reached == node ? kernel : calls_.function(reached);
      if (function.body) Add(function);
    }
  }
  CodeTable Take() {
    if (goes_on_.has_value()) {
      table_.code.meanings = meanings_.Take();
      if (!table_.code.meanings.empty()) table_.code.meanings.successors = std::move(*goes_on_);
    }
    return std::move(table_);
  }

 private:
  void Add(const ptx::Function& function) {
    const auto start = numbers_.first.find(&function);
    if (start == numbers_.first.end()) return;  // a kernel launched from the device: a launch of its own
    const analysis::Cfg cfg(function);
    const RegisterPacking packing(cfg);
    const RegisterConstants constants(cfg);
    const std::unordered_set<const ptx::Instruction*> leaders = Leaders(function);
    std::vector<std::uint32_t> block_of(cfg.instructions().size());  // of the code
    meanings_.BeginFunction();
    bool begins = true;
    for (std::uint32_t i = 0; i < cfg.instructions().size(); ++i) {
      const ptx::Instruction& instruction = *cfg.instructions()[i].instruction;
      CodeTable::Entry& entry = table_.entries[start->second + i];
      if (begins || leaders.contains(&instruction)) {
        entry.block = static_cast<std::uint32_t>(table_.code.blocks.size());
        table_.code.blocks.push_back({static_cast<std::uint32_t>(table_.code.instructions.size()), 0});
      }
      AddInstruction(instruction, packing, constants, entry);
      table_.code.blocks.back().count += entry.count;
      block_of[i] = static_cast<std::uint32_t>(table_.code.blocks.size() - 1);
      begins = exec::EndsBlock(instruction);
    }
    table_.code.register_count += packing.count();
    AddSuccessors(cfg, block_of);
  }

  /// Where the blocks of a function go on, of which those of the code are parts. `block_of`: the code's block of each
  /// instruction.
  void AddSuccessors(const analysis::Cfg& cfg, const std::vector<std::uint32_t>& block_of) {
    if (cfg.unresolved_branch() != nullptr) goes_on_.reset();
    if (!goes_on_.has_value()) return;
    goes_on_->resize(table_.code.blocks.size());
    for (std::uint32_t i = 0; i < block_of.size(); ++i) {
      const bool ends = i + 1 == block_of.size() || block_of[i + 1] != block_of[i];
      if (!ends) continue;
      std::vector<std::uint32_t>& next = (*goes_on_)[block_of[i]];
      const analysis::BlockId id = cfg.instructions()[i].block;
      const analysis::BasicBlock& block = cfg.blocks()[id];
      if (i + 1 != block.first + block.count) {
        next.push_back(block_of[i + 1]);
        continue;
      }
      for (const analysis::NodeId successor : cfg.graph().successors[id]) {
        const analysis::BasicBlock& to = cfg.blocks()[successor];
        if (to.count != 0) next.push_back(block_of[to.first]);
      }
    }
  }

  /// Instructions that a label stands before.
  static std::unordered_set<const ptx::Instruction*> Leaders(const ptx::Function& function) {
    std::unordered_set<const ptx::Instruction*> leaders;
    bool labelled = false;
    const auto walk = [&](const auto& self, const ptx::Block& block) -> void {
      for (const ptx::Statement& statement : block.statements) {
        if (std::holds_alternative<ptx::Label*>(statement)) {
          labelled = true;
        } else if (const auto* instruction = std::get_if<ptx::Instruction>(&statement)) {
          if (labelled) leaders.insert(instruction);
          labelled = false;
        } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
          self(self, **nested);
        }
      }
    };
    walk(walk, *function.body);
    return leaders;
  }

  void AddInstruction(const ptx::Instruction& instruction, const RegisterPacking& packing,
                      const RegisterConstants& constants, CodeTable::Entry& entry) {
    std::vector<std::uint16_t> destinations, sources;
    const auto number = [&](const ptx::Variable& variable, std::uint32_t index) {
      return static_cast<std::uint16_t>(
          std::min(table_.code.register_count + packing.Of(variable, index) + 1, 0xFFFFu));
    };
    const auto add = [](std::vector<std::uint16_t>& to, std::uint16_t reg) {
      constexpr std::size_t kMost = 255;
      if (std::ranges::find(to, reg) == to.end() && to.size() < kMost) to.push_back(reg);
    };
    ptx::VisitDefs(instruction,
                   [&](const ptx::Operand& operand) { add(destinations, number(*operand.variable, operand.index)); });
    ptx::VisitUses(instruction,
                   [&](const ptx::Operand& operand) { add(sources, number(*operand.variable, operand.index)); });
    ptx::VisitGuard(instruction,
                    [&](const ptx::Variable& variable, std::uint32_t index) { add(sources, number(variable, index)); });
    entry.first = static_cast<std::uint32_t>(table_.code.instructions.size());
    std::vector<Instruction> made =
        Classify(instruction, [&](const ptx::Operand& operand) { return constants.Of(operand); });
    entry.count = static_cast<std::uint32_t>(made.size());
    meanings_.Add(instruction, made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      const bool last = i + 1 == made.size();
      made[i].operands = static_cast<std::uint32_t>(table_.code.operands.size());
      made[i].destinations = last ? static_cast<std::uint8_t>(destinations.size()) : 0;
      made[i].sources = static_cast<std::uint8_t>(sources.size());
      if (last) table_.code.operands.insert(table_.code.operands.end(), destinations.begin(), destinations.end());
      table_.code.operands.insert(table_.code.operands.end(), sources.begin(), sources.end());
      table_.code.instructions.push_back(made[i]);
    }
  }

  const exec::InstructionNumbers numbers_;
  const analysis::CallGraph calls_;
  CodeTable table_;
  MeaningBuilder meanings_;
  std::optional<std::vector<std::vector<std::uint32_t>>> goes_on_{std::in_place};  // by block; nothing: not known
};

}  // namespace

CodeTable BuildCodeTable(const ptx::Module& module, const ptx::Function& kernel) {
  CodeTable table = Builder(module, kernel).Take();
  table.code.register_count = std::min(table.code.register_count, 0xFFFFu);
  return table;
}

}  // namespace gridloom::trace
