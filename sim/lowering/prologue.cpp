// Prologue: what a kernel loads of the constant bank before it begins, whatever it does: where its stack is, and from
// Ampere on the descriptor by which global memory is accessed. Measured: a vector addition on an H200 executes 20
// instructions a warp (tests/data/gpu/times-h200.json).
#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/lowering/lower.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

bool AccessesGlobal(const Kernel& kernel) {
  return std::ranges::any_of(kernel.blocks, [](const Block& block) {
    return std::ranges::any_of(block.nodes, [](const Node& node) {
      return node.shape.has_access() && node.shape.space == trace::Space::kGlobal;
    });
  });
}

}  // namespace

void Prologue(Kernel& kernel, const Target& target) {
  constexpr std::uint32_t kAmpere = 80;
  if (kernel.blocks.empty() || kernel.blocks[0].nodes.empty()) return;
  std::vector<Node>& nodes = kernel.blocks[0].nodes;
  const std::size_t loads = target.sm() >= kAmpere && AccessesGlobal(kernel) ? 2 : 1;
  for (std::size_t i = 0; i < loads; ++i) {
    Node load;
    load.shape.op = trace::OpClass::kInt;
    load.is_part = true;
    load.ptx = Lowered::kAdded;
    load.results = {{Term::Kind::kRegister, ++kernel.registers}};
    nodes.insert(nodes.begin(), std::move(load));
  }
}

}  // namespace gridloom::lowering
