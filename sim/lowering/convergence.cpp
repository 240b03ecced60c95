// Convergence: where lanes of a warp may part, an instruction before the branch says where they meet, and one there
// waits for them: SSY and SYNC up to Pascal, BSSY and BSYNC from Volta on (Mesa's nv50_ir and NAK; R. Huerta et al.,
// "Control Flow Management in Modern GPUs", arXiv 2407.02944, 2024). Lanes that a branch leads to the end of the kernel
// leave by it, and branches that are predicates need neither.
#include <algorithm>
#include <set>

#include "sim/lowering/lower.h"
#include "sim/lowering/pass.h"
#include "sim/lowering/warp_values.h"

namespace gridloom::lowering {
namespace {

/// By block: the header of the innermost loop that it is in, and by header, the blocks of its loop.
class Loops {
 public:
  Loops(const Kernel& kernel, const Flow& flow) : flow_(flow), bodies_(kernel.blocks.size()) {
    for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
      for (const std::uint32_t header : kernel.blocks[b].next) {
        if (flow.first.Dominates(header, b)) AddBody(header, b);
      }
    }
  }
  /// The block before all loops that `block` is in and `join` is not.
  std::uint32_t Outside(std::uint32_t block, std::uint32_t join) const {
    std::uint32_t outside = block;
    for (const std::uint32_t header : headers_) {
      const bool leaves = Has(header, outside) && !Has(header, join);
      if (leaves && flow_.first.parent(header) < bodies_.size()) outside = flow_.first.parent(header);
    }
    return outside;
  }

 private:
  bool Has(std::uint32_t header, std::uint32_t block) const {
    return std::ranges::binary_search(bodies_[header], block);
  }
  void AddBody(std::uint32_t header, std::uint32_t end) {
    std::set<std::uint32_t> body(bodies_[header].begin(), bodies_[header].end());
    body.insert(header);
    std::vector<std::uint32_t> work{end};
    while (!work.empty()) {
      const std::uint32_t b = work.back();
      work.pop_back();
      if (!body.insert(b).second) continue;
      work.insert(work.end(), flow_.before[b].begin(), flow_.before[b].end());
    }
    bodies_[header].assign(body.begin(), body.end());
    if (std::ranges::find(headers_, header) == headers_.end()) headers_.push_back(header);
    // The innermost first: what dominates comes last.
    std::ranges::sort(headers_, std::greater<>(), [&](std::uint32_t h) { return flow_.first.depth(h); });
  }

  const Flow& flow_;
  std::vector<std::vector<std::uint32_t>> bodies_;  // by header, in order
  std::vector<std::uint32_t> headers_;
};

Node Slot() {
  Node node;
  node.shape.op = trace::OpClass::kControl;
  node.is_part = true;
  node.ptx = Lowered::kAdded;
  return node;
}

bool Ends(const Block& block) { return block.next.empty() && block.nodes.size() == 1 && block.nodes[0].ordered; }

/// Blocks whose branch is a predicate.
std::vector<bool> Predicated(const Kernel& kernel) {
  std::vector<bool> is(kernel.blocks.size());
  for (const Region& region : kernel.regions) {
    std::uint32_t last = region.parts[0].block;
    for (const Region::Part& part : region.parts) {
      if (part.optional) is[last] = true;
      else last = part.block;
    }
  }
  return is;
}

}  // namespace

void Convergence(Kernel& kernel, const Target& target) {
  const Flow flow(kernel);
  const WarpValues values(kernel, flow);
  const Loops loops(kernel, flow);
  const std::vector<bool> predicated = Predicated(kernel);
  std::set<std::pair<std::uint32_t, std::uint32_t>> begins;  // where they meet, and where that is said
  for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
    if (!flow.first.Reaches(b) || !values.Parts(b) || predicated[b]) continue;
    const std::uint32_t join = flow.Join(b);
    if (join >= kernel.blocks.size() || Ends(kernel.blocks[join])) continue;
    begins.emplace(join, loops.Outside(b, join));
  }
  constexpr std::uint32_t kMaxwell = 50;  // before, the last instruction has a flag
  std::set<std::uint32_t> joins;
  for (const auto& [join, begin] : begins) {
    const bool has_earlier = std::ranges::any_of(begins, [&, join = join, begin = begin](const auto& other) {
      return other.first == join && other.second != begin && flow.first.Dominates(other.second, begin);
    });
    if (has_earlier) continue;
    std::vector<Node>& nodes = kernel.blocks[begin].nodes;
    nodes.insert(nodes.end() - (nodes.empty() || !nodes.back().ordered ? 0 : 1), Slot());
    joins.insert(join);
  }
  for (const std::uint32_t join : joins) {
    std::vector<Node>& nodes = kernel.blocks[join].nodes;
    if (target.sm() >= kMaxwell) nodes.insert(nodes.begin(), Slot());
  }
}

}  // namespace gridloom::lowering
