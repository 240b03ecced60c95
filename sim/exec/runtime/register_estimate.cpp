#include "sim/exec/runtime/register_estimate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/exec/contract/reached.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kAbiRegisters = 6;  // stack pointer, return address and scratch that no PTX register stands for
constexpr std::uint32_t kGranularity = 8;   // registers are given out in eights
constexpr std::uint32_t kMostRegisters = 255;
constexpr std::uint32_t kCallRegisters = 24;  // what the calling convention takes of whoever calls, whatever is called

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
        // Of a guard that nobody declares there is no register.
        if (instruction->guard && instruction->guard->predicate != nullptr)
          Touch(instruction->guard->predicate, instruction->guard->index);
        for (const ptx::Operand& operand : instruction->operands) Visit(operand);
      } else if (const auto* label = std::get_if<ptx::Label*>(&statement)) {
        labels[*label] = position;
      } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
        Visit(**nested);
      }
    }
  }
};

/// Pieces of the code between a label and a branch back to it, joined where they overlap.
class Loops {
 public:
  void Add(std::uint32_t head, std::uint32_t back) {
    if (head >= back) return;
    auto next = joined_.upper_bound(head);
    if (next != joined_.begin() && std::prev(next)->second > head) next = std::prev(next);
    while (next != joined_.end() && next->first < back) {
      head = std::min(head, next->first);
      back = std::max(back, next->second);
      next = joined_.erase(next);
    }
    joined_.emplace(head, back);
  }
  /// Where the piece ends that has `position` inside; else `position`.
  std::uint32_t EndAround(std::uint32_t position) const {
    const auto next = joined_.lower_bound(position);
    return next == joined_.begin() ? position : std::max(position, std::prev(next)->second);
  }

 private:
  std::map<std::uint32_t, std::uint32_t> joined_;
};

/// A register that is defined before a loop and used in it lives until the loop's last branch back, and so on from
/// there.
void ExtendOverLoops(Scan& scan) {
  std::vector<Range*> ranges;
  for (auto& [id, range] : scan.ranges) ranges.push_back(&range);
  std::ranges::sort(ranges, std::ranges::greater{}, &Range::first);
  std::ranges::sort(scan.loops, std::ranges::greater{});
  Loops after;  // those whose labels come after the definition
  auto loop = scan.loops.begin();
  for (Range* range : ranges) {
    for (; loop != scan.loops.end() && loop->first >= range->first; ++loop) after.Add(loop->first, loop->second);
    range->last = after.EndAround(range->last);
  }
}

}  // namespace

std::uint32_t EstimateRegisters(const ptx::Function& function) {
  if (!function.body) return 0;
  Scan scan;
  scan.Visit(*function.body);
  std::vector<std::int64_t> change(scan.position + 2, 0);
  ExtendOverLoops(scan);
  for (const auto& [id, range] : scan.ranges) {
    change[range.first] += range.words;
    change[range.last] -= range.words;
  }
  std::int64_t live = 0, most = 0;
  for (const std::int64_t delta : change) most = std::max(most, live += delta);
  const auto registers = static_cast<std::uint32_t>(std::min<std::int64_t>(most, kMostRegisters)) + kAbiRegisters;
  return std::min((registers + kGranularity - 1) / kGranularity * kGranularity, kMostRegisters);
}

std::uint32_t KernelRegisters::OfBody(const ptx::Function& function) {
  const auto [known, added] = of_bodies_.try_emplace(&function, 0);
  if (added) known->second = EstimateRegisters(function);
  return known->second;
}

std::uint32_t KernelRegisters::Of(const ptx::Function& kernel) {
  std::uint32_t registers = OfBody(kernel);
  for (const ptx::Function* function : ReachedFrom(module_, kernel).functions) {
    // A kernel that is named is launched, not called.
    if (!function->is_entry) registers = std::max({registers, kCallRegisters, OfBody(*function)});
  }
  return registers;
}

}  // namespace gridloom::exec
