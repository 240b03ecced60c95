#include "sim/lowering/warp_values.h"

#include <algorithm>

namespace gridloom::lowering {
namespace {

std::vector<std::vector<std::uint32_t>> Before(const Kernel& kernel) {
  std::vector<std::vector<std::uint32_t>> before(kernel.blocks.size());
  for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
    for (const std::uint32_t next : kernel.blocks[b].next) before[next].push_back(b);
  }
  return before;
}

/// The blocks with a root before all that nothing leads to.
analysis::Graph WarpGraphOf(const Kernel& kernel) {
  const auto root = static_cast<analysis::NodeId>(kernel.blocks.size());
  analysis::Graph graph(kernel.blocks.size() + 1);
  const auto before = Before(kernel);
  for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
    if (b == 0 || before[b].empty()) graph.AddEdge(root, b);
    for (const std::uint32_t next : kernel.blocks[b].next) graph.AddEdge(b, next);
  }
  return graph;
}

bool LoadsAlike(const Node& node, bool calls) {
  if (node.operation.base != Base::kLoad) return false;
  if (node.shape.space == trace::Space::kParameter) return !calls;
  return node.shape.space == trace::Space::kConstant;
}

}  // namespace

Flow::Flow(const Kernel& kernel)
    : entry_(static_cast<std::uint32_t>(kernel.blocks.size())),
      before(Before(kernel)),
      first(WarpGraphOf(kernel), entry_),
      after(WarpGraphOf(kernel), entry_) {}

const Node* ConditionalBranch(const Block& block) {
  if (block.nodes.empty() || block.next.size() < 2) return nullptr;
  const Node& last = block.nodes.back();
  return last.guarded() && last.operation.base == Base::kBranch ? &last : nullptr;
}

WarpValues::WarpValues(const Kernel& kernel, const Flow& flow)
    : kernel_(kernel), liveness_(kernel), is_alike_(kernel.registers + 1, true), parts_(kernel.blocks.size()) {
  constexpr std::size_t kMostBlocks = 2048;  // of more, nothing is known: ways are gone through for each branch
  if (kernel.blocks.size() > kMostBlocks) {
    is_alike_.assign(is_alike_.size(), false);
    parts_.assign(parts_.size(), true);
    return;
  }
  for (std::uint32_t b = 1; b < kernel.blocks.size(); ++b) calls_ |= flow.before[b].empty();
  while (ForgetNodes() || ForgetWays(flow)) {
  }
}

bool WarpValues::IsAlike(const Term& term) const {
  switch (term.kind) {
    case Term::Kind::kRegister: return is_alike_[term.value];
    case Term::Kind::kName: return term.value >= kernel_.differs_by_lane.size() || !kernel_.differs_by_lane[term.value];
    case Term::Kind::kNumber:
    case Term::Kind::kOffset: return true;
  }
  return false;
}

bool WarpValues::MakesAlike(const Node& node) const {
  if (node.ordered || (!node.operation.pure && !LoadsAlike(node, calls_))) return false;
  if ((node.flags & trace::Meaning::kPartial) != 0 && !node.guarded()) return false;
  return std::ranges::all_of(node.sources, [&](const Term& source) { return IsAlike(source); });
}

bool WarpValues::ForgetNodes() {
  bool forgot = false;
  for (const Block& block : kernel_.blocks) {
    for (const Node& node : block.nodes) {
      if (MakesAlike(node)) continue;
      VisitRegisters(node.results, [&](Register reg) {
        forgot |= is_alike_[reg];
        is_alike_[reg] = false;
      });
    }
  }
  return forgot;
}

bool WarpValues::ForgetWays(const Flow& flow) {
  bool forgot = false;
  for (std::uint32_t b = 0; b < kernel_.blocks.size(); ++b) {
    const Block& block = kernel_.blocks[b];
    if (parts_[b] || block.next.size() < 2) continue;
    const Node* const branch = ConditionalBranch(block);
    if (branch != nullptr && IsAlike(branch->sources.back())) continue;
    parts_[b] = true;
    Forget(flow, b);
    forgot = true;
  }
  return forgot;
}

/// What is written between where lanes part and where they meet, and read behind that, comes from different ways.
void WarpValues::Forget(const Flow& flow, std::uint32_t block) {
  const std::uint32_t join = flow.Join(block);
  std::vector<bool> seen(kernel_.blocks.size());
  std::vector<std::uint32_t> work = kernel_.blocks[block].next;
  while (!work.empty()) {
    const std::uint32_t b = work.back();
    work.pop_back();
    if (b == join || seen[b]) continue;
    seen[b] = true;
    for (const Node& node : kernel_.blocks[b].nodes)
      VisitRegisters(node.results, [&](Register reg) {
        if (join < kernel_.blocks.size() && liveness_.IsLiveIn(join, reg)) is_alike_[reg] = false;
      });
    work.insert(work.end(), kernel_.blocks[b].next.begin(), kernel_.blocks[b].next.end());
  }
}

}  // namespace gridloom::lowering
