// Atomics: where all lanes of a warp go to one address with one value, one lane goes for all: it multiplies the value
// by the number of lanes. Where they ask what was there, sums alone: each lane adds what the lanes before it would have
// added to what that one has found. nvcc has done so since CUDA 9 (A. Adinetz, "CUDA Pro Tip: Optimized Filtering with
// Warp-Aggregated Atomics", NVIDIA Technical Blog, note of 2017).
#include <algorithm>

#include "sim/lowering/facts.h"
#include "sim/lowering/lower.h"
#include "sim/lowering/pass.h"
#include "sim/lowering/warp_values.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

constexpr unsigned kWordBits = 32;

bool IsRead(const Node& node, const Values& values) {
  bool is_read = false;
  VisitRegisters(node.results, [&](Register reg) { is_read |= values.reads(reg) != 0; });
  return is_read;
}

bool CanBeOne(const Node& node, const Values& values, const WarpValues& alike) {
  if (!node.operation.joins_lanes || node.text == 0) return false;
  if (IsRead(node, values) && !(node.operation.sums && node.operation.bits == kWordBits)) return false;
  const auto end = node.sources.end() - (node.guarded() ? 1 : 0);
  return std::all_of(node.sources.begin(), end, [&](const Term& source) { return alike.IsAlike(source); });
}

/// An instruction beside the atomic that waits for `before`; its result.
Term AddStep(const Node& atomic, OpClass op, const std::vector<Term>& before, Kernel& kernel,
             std::vector<Node>& nodes) {
  Node node;
  node.shape.op = op;
  node.shape.line = atomic.shape.line;
  node.is_part = true;
  node.ptx = atomic.ptx;
  if (atomic.guarded()) node.sources = {atomic.sources.back()};
  node.waits_for = before;
  node.results = {{Term::Kind::kRegister, ++kernel.registers}};
  nodes.push_back(std::move(node));
  return nodes.back().results[0];
}

/// Who is there, how many that is, and whether this lane is the first of them, for which the atomic waits. Returns who
/// is there.
Term AddElection(Node& atomic, Kernel& kernel, std::vector<Node>& nodes) {
  const Term there = AddStep(atomic, OpClass::kShuffle, atomic.waits_for, kernel, nodes);
  const Term count = AddStep(atomic, OpClass::kInt, {there}, kernel, nodes);
  atomic.waits_for = {AddStep(atomic, OpClass::kInt, {count}, kernel, nodes)};
  return there;
}

/// How many lanes that are `there` come before this one: their mask, of it who is there, their number.
Term AddLanesBefore(const Node& atomic, Term there, Kernel& kernel, std::vector<Node>& nodes) {
  const Term before = AddStep(atomic, OpClass::kInt, {}, kernel, nodes);
  const Term both = AddStep(atomic, OpClass::kInt, {there, before}, kernel, nodes);
  return AddStep(atomic, OpClass::kInt, {both}, kernel, nodes);
}

/// What the lane that went has found, to all lanes, and what is added to it, in the atomic's result.
void AddShares(const Node& atomic, Term lanes_before, Kernel& kernel, std::vector<Node>& nodes) {
  const Term found = AddStep(atomic, OpClass::kShuffle, atomic.results, kernel, nodes);
  AddStep(atomic, OpClass::kInt, {found, lanes_before}, kernel, nodes);
  nodes.back().results = atomic.results;
  for (std::size_t i = nodes.size() - 2; i < nodes.size(); ++i) nodes[i].ptx = Lowered::kAdded;
}

}  // namespace

void Atomics(Kernel& kernel, const Target& target) {
  if (!target.is_volta_or_later()) return;
  const Values values(kernel);
  const WarpValues alike(kernel, Flow(kernel));
  for (Block& block : kernel.blocks) {
    const auto can_be_one = [&](const Node& node) { return CanBeOne(node, values, alike); };
    if (std::ranges::none_of(block.nodes, can_be_one)) continue;
    std::vector<Node> nodes;
    for (Node& node : block.nodes) {
      if (!can_be_one(node)) {
        nodes.push_back(std::move(node));
        continue;
      }
      const bool is_read = IsRead(node, values);
      const Term there = AddElection(node, kernel, nodes);
      const Term before = is_read ? AddLanesBefore(node, there, kernel, nodes) : Term{};
      node.one_lane = true;
      nodes.push_back(node);
      if (is_read) AddShares(node, before, kernel, nodes);
    }
    block.nodes = std::move(nodes);
  }
}

}  // namespace gridloom::lowering
