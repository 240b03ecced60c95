// Balance: from Volta on, sums of two words, shifts to the left and moves are integer products too (IMAD.IADD,
// IMAD.SHL, IMAD.MOV), and so may go to the pipe of multiply-adds while that of integers is busy.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

bool IsNumber(const Term& term) { return term.kind == Term::Kind::kNumber; }

/// A product of integers with 1, 0 or a power of two does the same. What has been fused or is a step of something else
/// stays what it is.
bool MayBeProduct(const Node& node) {
  const Operation& operation = node.operation;
  if (node.shape.op != OpClass::kInt || node.ordered || !node.parts.empty() || node.is_free) return false;
  if (operation.base == Base::kUnknown) return node.sources.size() == 1 && node.is_part;  // a constant's move
  if (operation.bits != 32 || operation.is_float || operation.saturates || !node.waits_for.empty()) return false;
  switch (operation.base) {
    case Base::kAdd:
    case Base::kMove: return true;
    case Base::kShl: return node.sources.size() == 2 && IsNumber(node.sources[1]);
    default: return false;
  }
}

/// Cycles that a scheduler's units of the pipe are occupied by one instruction, times the units.
std::uint64_t CostOf(const sim::TimingSpec& timing, OpClass op) {
  const std::uint64_t units = std::max(timing.units_of(timing.of(op).pipe), 1u);
  constexpr std::uint64_t kScale = 64;  // units of an SM are at most so many
  return std::uint64_t{timing.of(op).interval} * kScale / units;
}

/// Moves as many as make both pipes busy for the same time, evenly spread over the block.
void BalanceBlock(std::vector<Node>& nodes, const sim::TimingSpec& timing) {
  const sim::Pipe from = timing.of(OpClass::kInt).pipe, to = timing.of(OpClass::kIntMul).pipe;
  std::uint64_t of_from = 0, of_to = 0;
  std::vector<Node*> may;
  for (Node& node : nodes) {
    const sim::Pipe pipe = timing.of(node.shape.op).pipe;
    if (pipe == from) of_from += CostOf(timing, node.shape.op);
    if (pipe == to) of_to += CostOf(timing, node.shape.op);
    if (MayBeProduct(node)) may.push_back(&node);
  }
  const std::uint64_t there = CostOf(timing, OpClass::kIntMul), each = CostOf(timing, OpClass::kInt) + there;
  if (of_from <= of_to || each == 0) return;
  const std::uint64_t moved = std::min<std::uint64_t>((of_from - of_to) / each, may.size());
  for (std::size_t i = 0; i < may.size(); ++i) {
    if ((i + 1) * moved / may.size() != i * moved / may.size()) may[i]->shape.op = OpClass::kIntMul;
  }
}

}  // namespace

void Balance(Kernel& kernel, const Target& target) {
  const sim::TimingSpec& timing = target.device.timing;
  if (!target.is_volta_or_later() || timing.of(OpClass::kInt).pipe == timing.of(OpClass::kIntMul).pipe) return;
  for (Block& block : kernel.blocks) BalanceBlock(block.nodes, timing);
}

}  // namespace gridloom::lowering
