// Addresses: constants that are added to an address are the offset of the access.
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/lowering/facts.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

/// Memory instructions have room for so much (Mesa's NAK, sm70_encode.rs: 24 bits with their sign; sm50 the same).
constexpr std::int64_t kMostOffset = (1 << 23) - 1;

struct Sum {
  Term base;
  std::int64_t offset = 0;
};

/// What the node adds to a register, if that is a constant.
std::optional<Sum> SumOf(const Node& node) {
  const Operation& operation = node.operation;
  const bool sums = operation.base == Base::kAdd || operation.base == Base::kSub;
  if (!sums || operation.is_float || operation.saturates || operation.bits < 32 || node.partial() ||
      node.results.size() != 1 || node.sources.size() != 2)
    return std::nullopt;
  const auto number = [&](std::size_t i) {
    const std::uint64_t value = node.sources[i].value;
    return operation.bits == 32 ? std::int64_t{static_cast<std::int32_t>(value)} : static_cast<std::int64_t>(value);
  };
  if (node.sources[0].kind == Term::Kind::kRegister && node.sources[1].kind == Term::Kind::kNumber) {
    const std::int64_t added = number(1);
    if (added == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
    return Sum{node.sources[0], operation.base == Base::kAdd ? added : -added};
  }
  if (operation.base == Base::kAdd && node.sources[1].kind == Term::Kind::kRegister &&
      node.sources[0].kind == Term::Kind::kNumber)
    return Sum{node.sources[1], number(0)};
  return std::nullopt;
}

/// Walks through a block with what registers are the sums of.
class BlockSums {
 public:
  explicit BlockSums(const std::unordered_map<std::uint64_t, Sum>& fixed) : fixed_(fixed) {}

  void Run(std::vector<Node>& nodes) {
    for (Node& node : nodes) {
      if (node.shape.op == trace::OpClass::kMemory) FoldInto(node);
      const std::optional<Sum> sum = SumOf(node);
      for (const Term& result : node.results) Forget(result);
      if (sum.has_value() && sum->base != node.results[0]) Remember(node.results[0], *sum);
    }
  }

 private:
  const Sum* Find(const Term& reg) const {
    if (const auto sum = sums_.find(reg.value); sum != sums_.end()) return &sum->second;
    const auto sum = fixed_.find(reg.value);
    return sum == fixed_.end() ? nullptr : &sum->second;
  }

  void FoldInto(Node& node) {
    if (node.operation.base == Base::kUnknown || node.sources.size() < 2) return;
    Term& base = node.sources[0];
    Term& offset = node.sources[1];
    if (base.kind != Term::Kind::kRegister || offset.kind != Term::Kind::kOffset) return;
    for (std::size_t steps = 0; steps < kMostSteps; ++steps) {
      const Sum* const sum = Find(base);
      if (sum == nullptr) return;
      std::int64_t folded = 0;
      if (__builtin_add_overflow(static_cast<std::int64_t>(offset.value), sum->offset, &folded)) return;
      if (folded > kMostOffset || folded < -kMostOffset) return;
      base = sum->base;
      offset.value = static_cast<std::uint64_t>(folded);
    }
  }

  void Remember(const Term& result, const Sum& sum) {
    sums_[result.value] = sum;
    made_of_[sum.base.value].push_back(result.value);
  }
  /// The register is written: what is made of it, or was its sum, is no more.
  void Forget(const Term& reg) {
    sums_.erase(reg.value);
    const auto made = made_of_.find(reg.value);
    if (made == made_of_.end()) return;
    for (const std::uint64_t result : made->second) {
      const auto sum = sums_.find(result);
      if (sum != sums_.end() && sum->second.base == reg) sums_.erase(sum);
    }
    made_of_.erase(made);
  }

  static constexpr std::size_t kMostSteps = 64;
  const std::unordered_map<std::uint64_t, Sum>& fixed_;                    // of values, of values: in all blocks
  std::unordered_map<std::uint64_t, Sum> sums_;                            // of this block
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> made_of_;  // by base: results of sums, some forgotten
};

}  // namespace

void Addresses(Kernel& kernel, const Target&) {
  const Values values(kernel);
  std::unordered_map<std::uint64_t, Sum> fixed;
  for (const Block& block : kernel.blocks) {
    for (const Node& node : block.nodes) {
      const std::optional<Sum> sum = SumOf(node);
      if (sum.has_value() && values.IsFixed(node.results[0]) && values.IsFixed(sum->base))
        fixed[node.results[0].value] = *sum;
    }
  }
  for (Block& block : kernel.blocks) BlockSums(fixed).Run(block.nodes);
}

}  // namespace gridloom::lowering
