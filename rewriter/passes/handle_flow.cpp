#include "rewriter/passes/handle_flow.h"

#include <algorithm>

#include "rewriter/ptx/defuse.h"

namespace gridloom::passes {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;

HandleFlow::HandleFlow(const analysis::Cfg& cfg, ThreadMemory& memory, const std::vector<MadeStream>& made,
                       std::size_t number, const std::vector<Register>& holders)
    : cfg_(cfg), memory_(memory), made_(made), stream_(made[number]) {
  for (const Register& holder : holders) locations_.emplace(holder, count_++);
  for (const analysis::CfgInstruction& at : cfg.instructions()) {
    if (at.instruction->opcode != Opcode::kSt || at.instruction->operands.size() < 2) continue;
    const auto place = memory.Named(*at.instruction);
    const Operand& value = at.instruction->operands[1];
    const bool passes =
        place && place->variable->space == StateSpace::kParam && locations_.contains({value.variable, value.index});
    if (passes && argument_locations_.emplace(place->variable, count_).second) ++count_;
  }
}

std::optional<std::size_t> HandleFlow::LocationOf(const Operand& operand) const {
  if (operand.kind == OperandKind::kRegister) {
    const auto it = locations_.find({operand.variable, operand.index});
    return it == locations_.end() ? std::nullopt : std::optional(it->second);
  }
  const auto it = argument_locations_.find(operand.variable);
  return operand.kind != OperandKind::kSymbol || it == argument_locations_.end() ? std::nullopt
                                                                                 : std::optional(it->second);
}

bool HandleFlow::Holds(const Operand& operand, const State& state) const {
  const auto location = LocationOf(operand);
  return location && state[*location];
}

/// What lies where behind an instruction.
void HandleFlow::Step(std::uint32_t at, State& state) const {
  const Instruction& instruction = *cfg_.instructions()[at].instruction;
  const auto& operands = instruction.operands;
  const auto set = [&](std::size_t location, bool holds) {
    state[location] = holds || (instruction.guard && state[location]);
  };
  if (at == stream_.instruction) {
    // The slot has a new handle; StreamHandles has seen that no register keeps the old one.
    state.assign(state.size(), false);
    return;
  }
  const auto other = std::ranges::find(made_, at, &MadeStream::instruction);
  if (other != made_.end() && other->slot == stream_.slot && !other->refused()) set(0, false);
  if (instruction.opcode == Opcode::kSt && operands.size() > 1) {
    const auto place = memory_.Named(instruction);
    if (place && *place == stream_.slot) set(0, Holds(operands[1], state));
    else if (place && argument_locations_.contains(place->variable))
      set(argument_locations_.at(place->variable), Holds(operands[1], state));
    return;
  }
  bool holds = false;
  if (instruction.opcode == Opcode::kLd) holds = memory_.Named(instruction) == stream_.slot && state[0];
  else if ((instruction.opcode == Opcode::kMov || instruction.opcode == Opcode::kSelp) && operands.size() > 1)
    holds = std::any_of(operands.begin() + 1, operands.end(),
                        [&](const Operand& operand) { return Holds(operand, state); });
  ptx::VisitDefs(instruction, [&](const Operand& reg) {
    if (const auto location = LocationOf(reg)) set(*location, holds);
  });
}

bool HandleFlow::Reaches(std::uint32_t from, const std::map<std::uint32_t, std::size_t>& uses) const {
  std::map<analysis::BlockId, State> at_start;
  std::vector<std::pair<analysis::BlockId, std::uint32_t>> ways;
  const auto follow = [&](analysis::BlockId block, std::uint32_t first, State state) {
    const std::uint32_t end = cfg_.blocks()[block].first + cfg_.blocks()[block].count;
    for (std::uint32_t at = first; at < end; ++at) {
      const auto use = uses.find(at);
      const Operand* const argument =
          use == uses.end() ? nullptr : ArgumentOf(*cfg_.instructions()[at].instruction, use->second);
      if (argument != nullptr && Holds(*argument, state)) return true;
      Step(at, state);
    }
    if (std::ranges::none_of(state, [](bool holds) { return holds; })) return false;
    for (const analysis::BlockId next : cfg_.graph().successors[block]) {
      State& there = at_start.try_emplace(next, State(count_, false)).first->second;
      const State before = there;
      for (std::size_t i = 0; i < count_; ++i) there[i] = there[i] || state[i];
      if (there != before) ways.emplace_back(next, cfg_.blocks()[next].first);
    }
    return false;
  };
  if (follow(cfg_.instructions()[from].block, from + 1, State(count_, true))) return true;
  while (!ways.empty()) {
    const auto [block, first] = ways.back();
    ways.pop_back();
    if (follow(block, first, at_start.at(block))) return true;
  }
  return false;
}

}  // namespace gridloom::passes
