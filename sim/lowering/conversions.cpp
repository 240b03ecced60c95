// Conversions between integers: those that only cut off, or put zeros above a word, are no instructions, as a register
// has 32 bits and a pair of them any upper half. The others are logic and shifts, not the slow conversions of floating
// point.
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

bool IsOfIntegers(const Operation& operation) {
  return operation.base == Base::kConvert && operation.bits != 0 && operation.from != 0 && !operation.is_float &&
         !operation.from_float && !operation.saturates;
}

bool IsFree(const Node& node) {
  const Operation& operation = node.operation;
  if (node.guarded() || node.ordered || !node.parts.empty()) return false;
  // {low, high} of a pair, and the other way round.
  constexpr std::size_t kPairTerms = 3;
  if (operation.base == Base::kMove)
    return operation.bits == 64 && node.results.size() + node.sources.size() == kPairTerms;
  // One half for the other.
  constexpr unsigned kWordBits = 32;
  const bool shifts = (operation.base == Base::kShr && !operation.is_signed) || operation.base == Base::kShl;
  if (shifts) {
    return operation.bits == 2 * kWordBits && !operation.is_float && node.sources.size() == 2 &&
           node.sources[1] == Term{Term::Kind::kNumber, kWordBits};
  }
  if (!IsOfIntegers(operation) || node.results.size() != 1) return false;
  if (operation.bits <= operation.from) return true;
  return operation.bits == 64 && operation.from == 32 && !operation.from_signed;
}

}  // namespace

void Conversions(Kernel& kernel, const Target&) {
  for (Block& block : kernel.blocks) {
    for (Node& node : block.nodes) {
      if (IsOfIntegers(node.operation) && node.parts.empty()) node.shape.op = OpClass::kInt;
      node.is_free = IsFree(node);
    }
  }
}

}  // namespace gridloom::lowering
