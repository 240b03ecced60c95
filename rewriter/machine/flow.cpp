#include "rewriter/machine/flow.h"

#include <algorithm>
#include <cstdio>

#include "rewriter/machine/print.h"

namespace gridloom::machine {
namespace {

std::string At(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "at 0x%llx: ", static_cast<unsigned long long>(address));
  return text;
}

/// Whether the instruction may be passed over: under a guard, or with a condition of its own.
bool IsConditional(const Instruction& instruction) {
  if (instruction.guard != kTrue || instruction.guard_negated) return true;
  const Format& format = *instruction.format;
  return std::ranges::any_of(format.operands, [&](const Operand& operand) {
    if (operand.written || operand.value == kNoField) return false;
    // BRA.DIV and BRA.CONV ask for the lanes that a uniform register has; WARPSYNC.COLLECTIVE for those of a register.
    if (operand.kind == OperandKind::kUniformRegister ||
        (operand.kind == OperandKind::kRegister && format.flow == Flow::kBranch))
      return true;
    return operand.kind == OperandKind::kPredicate &&
           (instruction.Value(operand.value) != kTrue || instruction.Value(operand.negate) != 0);
  });
}

}  // namespace

std::int64_t BranchTargetOf(const Instruction& instruction, std::uint32_t at) {
  for (const Operand& operand : instruction.format->operands) {
    if (operand.kind != OperandKind::kTarget) continue;
    const unsigned shift = 64 - instruction.format->fields[operand.value].bits();
    const auto distance = static_cast<std::int64_t>(instruction.Value(operand.value) << shift) >> shift;
    return static_cast<std::int64_t>((at + 1) * kWordBytes) + distance * operand.scale;
  }
  return -1;
}

Status FlowGraph::Decode(std::span<const std::byte> code, unsigned sm) {
  for (std::size_t at = 0; at + kWordBytes <= code.size(); at += kWordBytes) {
    const Word word = ReadWord(code, at);
    auto instruction = machine::Decode(word, sm);
    if (!instruction) return Error{At(at) + "the table has no row for the word " + Hex(word)};
    uses_.push_back(UseOf(*instruction));
    instructions_.push_back(*std::move(instruction));
  }
  return {};
}

bool FlowGraph::HasPlace(std::int64_t address) const {
  return address >= 0 && address % static_cast<std::int64_t>(kWordBytes) == 0 &&
         address / static_cast<std::int64_t>(kWordBytes) < static_cast<std::int64_t>(instructions_.size());
}

Status FlowGraph::ConnectTable(std::uint32_t at, const BranchTargets& targets) {
  const Instruction& instruction = instructions_[at];
  const auto address = static_cast<std::uint32_t>(at * kWordBytes);
  const auto listed = targets.find(address);
  if (instruction.format->name != "BRX" || listed == targets.end())
    return Error{At(address) + Text(instruction, address) + " goes to places of a table that is not known"};
  for (const std::uint32_t target : listed->second) {
    if (!HasPlace(target)) return Error{At(address) + Text(instruction, address) + " leaves the function"};
    next_[at].push_back(target / static_cast<std::uint32_t>(kWordBytes));
    target_[next_[at].back()] = true;
  }
  return {};
}

Status FlowGraph::ConnectOne(std::uint32_t at, const std::vector<std::uint32_t>& returns) {
  const Instruction& instruction = instructions_[at];
  const Flow flow = instruction.format->flow;
  if (flow == Flow::kBranch || flow == Flow::kCall) {
    const std::int64_t target = BranchTargetOf(instruction, at);
    if (!HasPlace(target))
      return Error{At(at * kWordBytes) + Text(instruction, at * kWordBytes) + " leaves the function"};
    const auto number = static_cast<std::uint32_t>(target / static_cast<std::int64_t>(kWordBytes));
    next_[at].push_back(number);
    target_[number] = true;
  }
  if (flow == Flow::kReturn) {
    next_[at] = returns;
    for (const std::uint32_t number : returns) target_[number] = true;
  }
  const bool goes_on = flow == Flow::kNext || flow == Flow::kOutside || IsConditional(instruction);
  if (goes_on && at + 1 < instructions_.size()) next_[at].push_back(at + 1);
  return {};
}

Status FlowGraph::Connect(const BranchTargets& targets) {
  next_.resize(instructions_.size());
  target_.resize(instructions_.size());
  std::vector<std::uint32_t> returns;
  for (std::uint32_t at = 0; at + 1 < instructions_.size(); ++at) {
    if (instructions_[at].format->flow == Flow::kCall) returns.push_back(at + 1);
  }
  for (std::uint32_t at = 0; at < instructions_.size(); ++at) {
    if (instructions_[at].format->flow == Flow::kIndirect) GL_TRY_STATUS(ConnectTable(at, targets));
    GL_TRY_STATUS(ConnectOne(at, returns));
  }
  return {};
}

void FlowGraph::Propagate() {
  live_.resize(instructions_.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t at = instructions_.size(); at-- > 0;) {
      RegisterSet live;
      for (const std::uint32_t next : next_[at]) live |= live_[next];
      const Instruction& instruction = instructions_[at];
      if (instruction.guard == kTrue && !instruction.guard_negated) live -= uses_[at].written;
      live |= uses_[at].read;
      changed |= !(live == live_[at]);
      live_[at] = live;
    }
  }
}

Result<FlowGraph> FlowGraph::Build(std::span<const std::byte> code, unsigned sm, const BranchTargets& targets) {
  FlowGraph graph;
  GL_TRY_STATUS(graph.Decode(code, sm));
  GL_TRY_STATUS(graph.Connect(targets));
  graph.Propagate();
  return graph;
}

}  // namespace gridloom::machine
