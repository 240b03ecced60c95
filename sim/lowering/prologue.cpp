// Prologue: what a kernel loads before it begins, whatever it does: where its stack is, and from Ampere on the
// descriptor by which global memory is accessed. Measured: a vector addition on an H200 executes 20 instructions a warp
// (tests/data/gpu/times-h200.json). From Hopper on, also where shared memory begins (F. Mattana, "SASS King", kernels
// 01 and 06, github.com/florianmattana/sass-king, 2026). From Volta up to Ada where the stack is comes as an operand of
// the constant bank, so that the warp waits for the bank there; Hopper loads it.
#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/lowering/lower.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

bool Accesses(const Kernel& kernel, trace::Space space) {
  return std::ranges::any_of(kernel.blocks, [space](const Block& block) {
    return std::ranges::any_of(
        block.nodes, [space](const Node& node) { return node.shape.has_access() && node.shape.space == space; });
  });
}

constexpr std::uint32_t kAmpere = 80, kHopper = 90;

/// Instructions before the kernel's own.
std::size_t CountOf(const Kernel& kernel, const Target& target) {
  std::size_t count = 1;
  if (target.sm() >= kAmpere && Accesses(kernel, trace::Space::kGlobal)) ++count;
  // Where shared memory begins follows from the CTA's place in its cluster: it is read, shifted and added.
  if (target.sm() >= kHopper && Accesses(kernel, trace::Space::kShared)) count += 3;
  return count;
}

}  // namespace

void Prologue(Kernel& kernel, const Target& target) {
  if (kernel.blocks.empty() || kernel.blocks[0].nodes.empty()) return;
  std::vector<Node>& nodes = kernel.blocks[0].nodes;
  const std::size_t count = CountOf(kernel, target);
  for (std::size_t i = 0; i < count; ++i) {
    Node load;
    load.shape.op = trace::OpClass::kInt;
    load.is_part = true;
    load.ptx = Lowered::kAdded;
    load.results = {{Term::Kind::kRegister, ++kernel.registers}};
    load.reads_operands = i + 1 == count && target.is_volta_or_later() && target.sm() < kHopper;
    nodes.insert(nodes.begin(), std::move(load));
  }
}

}  // namespace gridloom::lowering
