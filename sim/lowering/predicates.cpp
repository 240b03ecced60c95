// Predicates: a branch over few instructions is none: these run under its condition, for the lanes that would go there.
// Blocks that follow each other on all ways are one. Which blocks run together is decided here (Kernel::regions); their
// code is made when all else has been done (regions.cpp).
#include <algorithm>
#include <utility>

#include "sim/lowering/pass.h"
#include "sim/lowering/warp_values.h"

namespace gridloom::lowering {
namespace {

/// "The compiler replaces a branch instruction with predicated instructions only if the number of instructions
/// controlled by the branch condition is less or equal to a certain threshold: If the compiler determines that the
/// condition is likely to produce many divergent warps, this threshold is 7, otherwise it is 4" (NVIDIA, CUDA C
/// Programming Guide, up to version 4.2, section 5.4.2).
constexpr std::size_t kMostParting = 7, kMostTogether = 4;

bool IsJump(const Node& node) { return node.operation.base == Base::kBranch && !node.guarded(); }

class RegionFinder {
 public:
  explicit RegionFinder(Kernel& kernel)
      : kernel_(kernel), flow_(kernel), values_(kernel, flow_), is_taken_(kernel.blocks.size()) {}

  void Run() {
    for (std::uint32_t b = 0; b < kernel_.blocks.size(); ++b) {
      if (is_taken_[b] || !flow_.first.Reaches(b)) continue;
      Region region;
      region.parts.push_back({.block = b});
      while (region.parts.size() < Region::kMostParts && region.next == Region::kNoBlock && Extend(region)) {
      }
      if (region.parts.size() == 1) continue;
      for (const Region::Part& part : region.parts) is_taken_[part.block] = true;
      kernel_.regions.push_back(std::move(region));
    }
  }

 private:
  const std::vector<std::uint32_t>& NextOf(std::uint32_t block) const { return kernel_.blocks[block].next; }

  static bool Has(const Region& region, std::uint32_t block) {
    return std::ranges::any_of(region.parts, [&](const Region::Part& part) { return part.block == block; });
  }

  /// What comes behind the last block that all lanes go through.
  bool Extend(Region& region) const {
    const std::uint32_t last = LastOfAll(region);
    const std::vector<std::uint32_t>& next = NextOf(last);
    if (next.size() == 1) return ExtendStraight(region, last, next[0]);
    const Node* const branch = next.size() == 2 ? ConditionalBranch(kernel_.blocks[last]) : nullptr;
    if (branch == nullptr || next[0] == next[1]) return false;
    const Term condition = branch->sources.back();
    const std::size_t most = values_.Parts(last) ? kMostParting : kMostTogether;
    for (const std::size_t side : {0u, 1u}) {
      const std::uint32_t over = next[side], join = next[1 - side];
      if (CanBePredicated(region, over, last, join, most))
        return AddParts(region, {{.block = over, .optional = true, .condition = condition}}, join);
    }
    const std::uint32_t join = flow_.Join(last);
    if (join >= kernel_.blocks.size() || region.parts.size() + 2 > Region::kMostParts) return false;
    if (!CanBePredicated(region, next[0], last, join, most) || !CanBePredicated(region, next[1], last, join, most))
      return false;
    const auto [first, second] = std::minmax(next[0], next[1]);
    return AddParts(region,
                    {{.block = first, .optional = true, .condition = condition},
                     {.block = second, .optional = true, .condition = condition}},
                    join);
  }

  static std::uint32_t LastOfAll(const Region& region) {
    for (std::size_t i = region.parts.size(); i-- > 0;) {
      if (!region.parts[i].optional) return region.parts[i].block;
    }
    return region.parts[0].block;
  }

  bool ExtendStraight(Region& region, std::uint32_t last, std::uint32_t next) const {
    if (flow_.before[next].size() != 1 || Has(region, next)) return false;
    const Block& block = kernel_.blocks[last];
    if (!block.nodes.empty() && block.nodes.back().ordered && !IsJump(block.nodes.back())) return false;
    region.parts.push_back({.block = next});
    return true;
  }

  bool CanBePredicated(const Region& region, std::uint32_t over, std::uint32_t from, std::uint32_t join,
                       std::size_t most) const {
    const Block& block = kernel_.blocks[over];
    if (Has(region, over) || is_taken_[over] || flow_.before[over] != std::vector{from} ||
        block.next != std::vector{join})
      return false;
    std::size_t count = 0;
    for (const Node& node : block.nodes) {
      if (IsJump(node) && &node == &block.nodes.back()) continue;
      if (node.ordered || node.shape.op == trace::OpClass::kBarrier || node.shape.op == trace::OpClass::kFence)
        return false;
      count += node.is_free ? 0 : 1;
    }
    return count <= most;
  }

  /// The region goes on behind the parts if nothing else leads there; else it ends before.
  bool AddParts(Region& region, std::vector<Region::Part> parts, std::uint32_t join) const {
    const std::uint32_t from = LastOfAll(region);
    region.parts.insert(region.parts.end(), parts.begin(), parts.end());
    const bool only = std::ranges::all_of(flow_.before[join], [&](std::uint32_t before) {
      return before == from ||
             std::ranges::any_of(parts, [&](const Region::Part& part) { return part.block == before; });
    });
    if (only && region.parts.size() < Region::kMostParts && !Has(region, join) && !is_taken_[join])
      region.parts.push_back({.block = join});
    else region.next = join;
    return true;
  }

  Kernel& kernel_;
  const Flow flow_;
  const WarpValues values_;
  std::vector<bool> is_taken_;
};

}  // namespace

void Predicates(Kernel& kernel, const Target&) { RegionFinder(kernel).Run(); }

}  // namespace gridloom::lowering
