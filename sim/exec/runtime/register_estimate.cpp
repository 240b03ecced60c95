#include "sim/exec/runtime/register_estimate.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kAbiRegisters = 6;  // stack pointer, return address and scratch that no PTX register stands for
constexpr std::uint32_t kGranularity = 8;   // registers are given out in eights
constexpr std::uint32_t kMostRegisters = 255;

struct Range {
  std::uint32_t first = 0, last = 0, words = 0;
};

using RegisterId = std::pair<const ptx::Variable*, std::uint32_t>;

struct Scan {
  std::uint32_t position = 0;
  std::map<RegisterId, Range> ranges;
  std::unordered_map<const ptx::Label*, std::uint32_t> labels;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> loops;  // label position, branch position

  void Touch(const ptx::Variable* variable, std::uint32_t index) {
    if (variable->space != ptx::StateSpace::kReg) return;
    const ptx::TypeInfo& type = ptx::Info(variable->type);
    const std::uint32_t words = type.cls == ptx::TypeClass::kPredicate ? 0 : (type.bits + 31u) / 32u * variable->vector;
    auto [it, added] = ranges.try_emplace({variable, index}, Range{position, position, words});
    if (!added) it->second.last = position;
  }
  void Visit(const ptx::Operand& operand) {
    if (operand.kind == ptx::OperandKind::kRegister) Touch(operand.variable, operand.index);
    if (operand.label) {
      const auto it = labels.find(operand.label);
      if (it != labels.end()) loops.emplace_back(it->second, position);
    }
    for (const ptx::Operand& element : operand.elements) Visit(element);
    if (!operand.address) return;
    for (const ptx::Operand& base : operand.address->base) Visit(base);
    for (const ptx::Operand& element : operand.address->elements) Visit(element);
  }
  void Visit(const ptx::Block& block) {
    for (const ptx::Statement& statement : block.statements) {
      if (const auto* instruction = std::get_if<ptx::Instruction>(&statement)) {
        ++position;
        if (instruction->guard) Touch(instruction->guard->predicate, instruction->guard->index);
        for (const ptx::Operand& operand : instruction->operands) Visit(operand);
      } else if (const auto* label = std::get_if<ptx::Label*>(&statement)) {
        labels[*label] = position;
      } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
        Visit(**nested);
      }
    }
  }
};

}  // namespace

std::uint32_t EstimateRegisters(const ptx::Function& function) {
  if (!function.body) return 0;
  Scan scan;
  scan.Visit(*function.body);
  std::vector<std::int64_t> change(scan.position + 2, 0);
  for (auto& [id, range] : scan.ranges) {
    // A register that is defined before a loop and used in it lives until the loop's last branch back.
    for (const auto& [head, back] : scan.loops)
      if (range.first <= head && range.last > head && range.last < back) range.last = back;
    change[range.first] += range.words;
    change[range.last] -= range.words;
  }
  std::int64_t live = 0, most = 0;
  for (const std::int64_t delta : change) most = std::max(most, live += delta);
  const auto registers = static_cast<std::uint32_t>(std::min<std::int64_t>(most, kMostRegisters)) + kAbiRegisters;
  return std::min((registers + kGranularity - 1) / kGranularity * kGranularity, kMostRegisters);
}

}  // namespace gridloom::exec
