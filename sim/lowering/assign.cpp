// Registers of the device for those of PTX: linear scan over whole live ranges in the order of the blocks, as
// trace::BuildCodeTable does for the order of PTX.
#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "sim/lowering/liveness.h"
#include "sim/lowering/lower.h"

namespace gridloom::lowering {
namespace {

class Packing {
 public:
  explicit Packing(const Kernel& kernel) : first_(kernel.registers + 1, ~0u), last_(kernel.registers + 1) {
    FindRanges(kernel);
    Assign();
  }
  std::uint32_t count() const { return count_; }
  std::uint32_t Of(Register reg) const { return number_[reg]; }

 private:
  void Touch(Register reg, std::uint32_t at) {
    first_[reg] = std::min(first_[reg], at);
    last_[reg] = std::max(last_[reg], at);
  }

  /// Code of regions stands where they begin.
  static std::vector<std::size_t> BlocksInPlace(const Kernel& kernel) {
    std::vector<std::size_t> code(kernel.blocks.size());
    for (const Region& region : kernel.regions) code[region.parts[0].block] = region.code;
    std::vector<std::size_t> blocks;
    std::vector<bool> is_code(kernel.blocks.size());
    for (const Region& region : kernel.regions) is_code[region.code] = region.code != 0;
    for (std::size_t b = 0; b < kernel.blocks.size(); ++b) {
      if (is_code[b]) continue;
      blocks.push_back(b);
      if (code[b] != 0) blocks.push_back(code[b]);
    }
    return blocks;
  }

  void FindRanges(const Kernel& kernel) {
    const Liveness liveness(kernel);
    std::uint32_t at = 0;
    for (const std::size_t b : BlocksInPlace(kernel)) {
      for (const Register reg : liveness.LiveIn(b)) Touch(reg, at);
      for (const Node& node : kernel.blocks[b].nodes) {
        VisitRegisters(node.results, [&](Register reg) { Touch(reg, at); });
        VisitReads(node, [&](Register reg) { Touch(reg, at); });
        ++at;
      }
      for (const Register reg : liveness.LiveOut(b)) Touch(reg, at);
    }
  }

  void Assign() {
    std::vector<Register> order;
    for (Register reg = 1; reg < first_.size(); ++reg) {
      if (first_[reg] != ~0u) order.push_back(reg);
    }
    std::ranges::sort(order, {}, [&](Register reg) { return std::pair(first_[reg], reg); });
    using Ending = std::pair<std::uint32_t, std::uint32_t>;  // last use, number
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> active;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
    number_.assign(first_.size(), 0);
    for (const Register reg : order) {
      while (!active.empty() && active.top().first <= first_[reg]) {
        free.push(active.top().second);
        active.pop();
      }
      if (free.empty()) free.push(++count_);
      number_[reg] = free.top();
      free.pop();
      active.emplace(last_[reg], number_[reg]);
    }
  }

  std::vector<std::uint32_t> first_, last_, number_;  // by register
  std::uint32_t count_ = 0;
};

}  // namespace

void AssignRegisters(const Kernel& kernel, trace::KernelCode& code) {
  constexpr std::uint32_t kMost = 0xFFFF;
  constexpr std::size_t kMostTerms = 127;  // results and sources each
  const Packing packing(kernel);
  const auto number = [&](Register reg) {
    return static_cast<std::uint16_t>(std::min(kernel.has_meanings ? packing.Of(reg) : reg, kMost));
  };
  const auto add = [&](const auto& visit_registers) {
    const auto first = static_cast<std::ptrdiff_t>(code.operands.size());
    visit_registers([&](Register reg) {
      const auto begin = code.operands.begin() + first;
      const bool known = std::find(begin, code.operands.end(), number(reg)) != code.operands.end();
      if (!known && code.operands.end() - begin < static_cast<std::ptrdiff_t>(kMostTerms))
        code.operands.push_back(number(reg));
    });
    return static_cast<std::uint8_t>(code.operands.size() - static_cast<std::size_t>(first));
  };
  std::size_t at = 0;
  for (const Block& block : kernel.blocks) {
    for (const Node& node : block.nodes) {
      trace::Instruction& instruction = code.instructions[at++];
      instruction.operands = static_cast<std::uint32_t>(code.operands.size());
      instruction.destinations = add([&](const auto& visit) { VisitRegisters(node.results, visit); });
      instruction.sources = add([&](const auto& visit) { VisitReads(node, visit); });
    }
  }
  code.register_count = std::min(kernel.has_meanings ? packing.count() : kernel.registers, kMost);
}

}  // namespace gridloom::lowering
