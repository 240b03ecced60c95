// Atomics: where all lanes of a warp go to one address with one value and nobody asks what was there, one lane goes for
// all: it multiplies the value by the number of lanes. nvcc has done so since CUDA 9 (A. Adinetz, "CUDA Pro Tip:
// Optimized Filtering with Warp-Aggregated Atomics", NVIDIA Technical Blog, note of 2017).
#include <algorithm>

#include "sim/lowering/facts.h"
#include "sim/lowering/pass.h"
#include "sim/lowering/warp_values.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

bool CanBeOne(const Node& node, const Values& values, const WarpValues& alike) {
  if (!node.operation.joins_lanes || node.text == 0) return false;
  bool is_read = false;
  VisitRegisters(node.results, [&](Register reg) { is_read |= values.reads(reg) != 0; });
  const auto end = node.sources.end() - (node.guarded() ? 1 : 0);
  return !is_read && std::all_of(node.sources.begin(), end, [&](const Term& source) { return alike.IsAlike(source); });
}

/// Who is there, how many that is, and whether this lane is the first of them.
void AddElection(const Node& atomic, Kernel& kernel, std::vector<Node>& nodes, std::vector<Term>& waits_for) {
  for (const OpClass op : {OpClass::kShuffle, OpClass::kInt, OpClass::kInt}) {
    Node node;
    node.shape.op = op;
    node.shape.line = atomic.shape.line;
    node.is_part = true;
    node.ptx = atomic.ptx;
    if (atomic.guarded()) node.sources = {atomic.sources.back()};
    node.waits_for = waits_for;
    node.results = {{Term::Kind::kRegister, ++kernel.registers}};
    waits_for = node.results;
    nodes.push_back(std::move(node));
  }
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
      if (can_be_one(node)) {
        AddElection(node, kernel, nodes, node.waits_for);
        node.one_lane = true;
      }
      nodes.push_back(std::move(node));
    }
    block.nodes = std::move(nodes);
  }
}

}  // namespace gridloom::lowering
