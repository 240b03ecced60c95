#include "tests/sim/lowering/interpreter.h"

#include <random>
#include <unordered_map>

namespace gridloom::test {
namespace {

using lowering::Base, lowering::Node, lowering::Operation, lowering::Term;
using trace::OpClass, trace::Space;

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  a = (a ^ b) * 0x9E3779B97F4A7C15u;
  return (a ^ a >> 29) * 0xBF58476D1CE4E5B9u;
}

std::uint64_t Cut(std::uint64_t value, unsigned bits) {
  return bits >= 64 || bits == 0 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

class Thread {
 public:
  explicit Thread(std::uint64_t seed) : seed_(seed) {}

  void Run(const lowering::Block& block, std::uint32_t visit) {
    visit_ = visit;
    for (const Node& node : block.nodes) Do(node);
  }
  /// The code of a region; `visits`: by part, kNotVisited for those that the thread does not come through.
  static constexpr std::uint32_t kNotVisited = ~0u;
  void Run(const lowering::Block& code, const std::vector<std::uint32_t>& visits) {
    for (const Node& node : code.nodes) {
      visit_ = visits[node.part];
      if (visit_ != kNotVisited) Do(node);
    }
  }
  Effects Take() { return std::move(effects_); }

 private:
  /// Few values, so that pointers meet.
  std::uint64_t Parameter(std::uint64_t name, std::uint64_t offset) const {
    return 4096 + Mix(Mix(seed_, name), offset) % 4 * 8;
  }

  std::uint64_t Of(const Term& term) {
    switch (term.kind) {
      case Term::Kind::kRegister: {
        const auto [value, is_new] = registers_.try_emplace(term.value, 0);
        if (is_new) value->second = Mix(seed_, term.value) % 64;
        return value->second;
      }
      case Term::Kind::kNumber:
      case Term::Kind::kOffset: return term.value;
      case Term::Kind::kName:
        if (term.value >> 32 != 0) return Parameter(term.value & 0xFFFFFFFFu, (term.value >> 32) - 1);
        return Mix(seed_, ~term.value) % 256 * 8;
    }
    return 0;
  }

  std::uint64_t Sources(const Node& node) {
    std::uint64_t all = Mix(seed_, node.text);
    for (const Term& term : node.sources) all = Mix(all, Of(term));
    return all;
  }

  void Do(const Node& node) {
    if (node.is_part) return;
    if (!node.parts.empty()) {
      for (const Node& part : node.parts) Do(part);
      return;
    }
    if (node.ordered) effects_.ordered.emplace_back(node.ptx, Sources(node));
    // Nobody knows here whether the guard is negated.
    const bool runs = !node.guarded() || (Of(node.sources.back()) ^ node.text) % 2 == 0;
    if (node.shape.has_access()) return Access(node, runs);
    if (node.shape.op == OpClass::kBarrier || node.shape.op == OpClass::kFence) return Meet();
    if (!runs) return;
    if (node.results.size() == 1) return Write(node, 0, Compute(node));
    const std::uint64_t all = Sources(node);
    for (std::size_t i = 0; i < node.results.size(); ++i) Write(node, i, Mix(all, i));
  }

  void Write(const Node& node, std::size_t result, std::uint64_t value) {
    const Term& term = node.results[result];
    if ((node.flags & trace::Meaning::kPartial) != 0 && !node.guarded()) value = Mix(Of(term), value);
    registers_[term.value] = value;
  }

  std::uint64_t Compute(const Node& node) {
    const Operation& operation = node.operation;
    const std::size_t count = node.sources.size() - (node.guarded() ? 1 : 0);
    if (operation.base == Base::kMove && count == 1) return Of(node.sources[0]);
    if (operation.base == Base::kConvertAddress && operation.global) return Of(node.sources[0]);
    if (operation.base == Base::kLoad && node.shape.space == Space::kParameter && count == 2)
      return Parameter(node.sources[0].value, node.sources[1].value);
    if (operation.is_float || operation.saturates || operation.from_float) return Sources(node);
    const auto a = [&] { return Cut(Of(node.sources[0]), operation.bits); };
    const auto b = [&] { return Cut(Of(node.sources[1]), operation.bits); };
    const unsigned bits = operation.bits;
    const auto extended = [&](std::uint64_t value) {
      const bool negative = operation.is_signed && bits < 64 && (value >> (bits - 1) & 1) != 0;
      return negative ? value | ~((std::uint64_t{1} << bits) - 1) : value;
    };
    switch (operation.base) {
      case Base::kAdd: return count == 2 ? Cut(a() + b(), bits) : Sources(node);
      case Base::kSub: return count == 2 ? Cut(a() - b(), bits) : Sources(node);
      case Base::kShl: return b() >= bits ? 0 : Cut(a() << b(), bits);
      case Base::kMul:
        if (operation.wide) return Cut(extended(a()) * extended(b()), 2 * bits);
        return operation.low ? Cut(a() * b(), bits) : Sources(node);
      case Base::kMad:
        if (operation.wide) return Cut(extended(a()) * extended(b()) + Of(node.sources[2]), 2 * bits);
        return operation.low ? Cut(a() * b() + Of(node.sources[2]), bits) : Sources(node);
      default: return Sources(node);
    }
  }

  /// What others wrote comes to be seen.
  void Meet() {
    ++epoch_;
    for (auto& [place, value] : effects_.memory) value = Mix(value, epoch_);
  }

  std::uint64_t Byte(const std::pair<int, std::uint64_t>& place) const {
    const auto stored = effects_.memory.find(place);
    if (stored != effects_.memory.end()) return stored->second;
    return Mix(Mix(seed_, place.second * 8 + static_cast<std::uint64_t>(place.first)), epoch_);
  }

  void Access(const Node& node, bool runs) {
    const trace::Instruction& shape = node.shape;
    std::uint64_t address = 0, stored = Mix(seed_, node.text);
    for (std::size_t i = 0; i < node.sources.size(); ++i) {
      const bool of_address = i == 0 || (i == 1 && node.sources[1].kind == Term::Kind::kOffset);
      if (of_address) address += Of(node.sources[i]);
      else stored = Mix(stored, Of(node.sources[i]));
    }
    if (shape.space == Space::kShared) address = Cut(address, 32);
    const bool writes = (shape.flags & (trace::kStore | trace::kAtomic)) != 0;
    if ((shape.flags & (trace::kVolatile | trace::kAtomic)) != 0) Meet();
    effects_.records[{visit_, node.access}] = {runs ? address : 0, runs && writes ? stored : 0};
    if (!runs) return;
    // What nobody writes lies apart: kernels promise that.
    constexpr int kReadOnly = 100;
    const int space = (shape.flags & trace::kReadOnly) != 0 ? kReadOnly : static_cast<int>(shape.space);
    std::uint64_t loaded = 0;
    for (std::uint64_t i = 0; i < shape.width; ++i) loaded = Mix(loaded, Byte({space, address + i}));
    for (std::size_t i = 0; i < node.results.size(); ++i) Write(node, i, Mix(loaded, i));
    for (std::uint64_t i = 0; writes && i < shape.width; ++i) effects_.memory[{space, address + i}] = Mix(stored, i);
  }

  const std::uint64_t seed_;
  std::uint32_t visit_ = 0;
  std::uint64_t epoch_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> registers_;
  Effects effects_;
};

/// Which visits from `at` on are those of a region's parts; none: they are not.
std::vector<std::uint32_t> VisitsOf(const lowering::Region& region, const std::vector<std::uint32_t>& path,
                                    std::uint32_t& at) {
  std::vector<std::uint32_t> visits;
  std::uint32_t next = at;
  for (const lowering::Region::Part& part : region.parts) {
    const bool comes = next < path.size() && path[next] == part.block;
    if (!comes && !part.optional) return {};
    visits.push_back(comes ? next++ : Thread::kNotVisited);
  }
  if (region.next != lowering::Region::kNoBlock && (next == path.size() || path[next] != region.next)) return {};
  at = next;
  return visits;
}

}  // namespace

Effects Interpret(const lowering::Kernel& kernel, const std::vector<std::uint32_t>& path, std::uint64_t seed) {
  Thread thread(seed);
  std::vector<const lowering::Region*> regions(kernel.blocks.size());
  for (const lowering::Region& region : kernel.regions) regions[region.parts[0].block] = &region;
  for (std::uint32_t visit = 0; visit < path.size();) {
    const lowering::Region* const region = regions[path[visit]];
    std::vector<std::uint32_t> visits;
    if (region != nullptr && region->code != 0) visits = VisitsOf(*region, path, visit);
    if (visits.empty()) {
      thread.Run(kernel.blocks[path[visit]], visit);
      ++visit;
    } else {
      thread.Run(kernel.blocks[region->code], visits);
    }
  }
  Effects effects = thread.Take();
  for (const lowering::Region& region : kernel.regions) {
    for (const lowering::Region::Part& part : region.parts) {
      const std::vector<Node>& nodes = kernel.blocks[part.block].nodes;
      const bool goes_on = part.optional || &part != &region.parts.back();
      if (goes_on && !nodes.empty() && nodes.back().operation.base == Base::kBranch)
        effects.inner_branches.insert(nodes.back().ptx);
    }
  }
  return effects;
}

std::vector<std::uint32_t> RandomPath(const lowering::Kernel& kernel, std::uint64_t seed, std::size_t most) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> path{0};
  while (path.size() < most && !kernel.blocks[path.back()].next.empty()) {
    const std::vector<std::uint32_t>& next = kernel.blocks[path.back()].next;
    path.push_back(next[random() % next.size()]);
  }
  return path;
}

std::string Difference(const Effects& original, const Effects& changed) {
  const auto ordered = [&](const Effects& effects) {
    auto list = effects.ordered;
    std::erase_if(list, [&](const auto& entry) { return changed.inner_branches.contains(entry.first); });
    return list;
  };
  if (ordered(original) != ordered(changed)) return "instructions that stay in order read something else";
  if (original.memory != changed.memory) return "memory holds something else";
  for (const auto& [place, record] : original.records) {
    const auto other = changed.records.find(place);
    const std::string where =
        "visit " + std::to_string(place.first) + ", record " + std::to_string(place.second) + ": ";
    if (other == changed.records.end()) {
      if (record.second != 0) return where + "no longer stored";
    } else if (other->second != record) {
      return where + "address " + std::to_string(other->second.first) + " in place of " + std::to_string(record.first);
    }
  }
  for (const auto& [place, record] : changed.records) {
    if (!original.records.contains(place)) return "an access that was not there";
  }
  return "";
}

}  // namespace gridloom::test
