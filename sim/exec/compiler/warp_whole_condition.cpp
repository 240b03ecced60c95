#include "sim/exec/compiler/warp_whole_condition.h"

#include <llvm/IR/PatternMatch.h>

#include <limits>
#include <optional>
#include <utility>

#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::CmpInst;
using llvm::Value;

namespace {

constexpr unsigned kMostNested = 3;  // of conditions made of others: at most eight compares

/// What a pattern of lanes adds to its base. None where it may take an index around the end of its type twice.
struct Span {
  std::int64_t low, high;
};

std::optional<Span> SpanOf(const LanePattern& pattern) {
  const auto [low, high] = PatternExtent(pattern);
  if (low < 0 || high > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return Span{low, high};
}

}  // namespace

Value* WholeConditions::HoldsForAll(Value* condition, bool wanted) { return HoldsForAll(condition, wanted, 0); }

Value* WholeConditions::HoldsForAll(Value* condition, bool wanted, unsigned depth) {
  using namespace llvm::PatternMatch;
  if (values_.ShapeOf(condition).uniform()) {
    Value* base = values_.Base(condition);
    return wanted ? base : b_.CreateNot(base);
  }
  // What an instruction of another block was made of need not be there any more.
  const auto* made = llvm::dyn_cast<llvm::Instruction>(condition);
  if (!made || made->getParent() != source_.order.blocks[w_.current]) return nullptr;
  if (const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(condition)) return CompareHoldsForAll(*compare, wanted);
  Value *one = nullptr, *other = nullptr;
  if (depth == kMostNested) return nullptr;
  if (match(condition, m_Not(m_Value(one)))) return HoldsForAll(one, !wanted, depth + 1);
  const bool both = match(condition, m_LogicalAnd(m_Value(one), m_Value(other)));
  if (!both && !match(condition, m_LogicalOr(m_Value(one), m_Value(other)))) return nullptr;
  Value* first = HoldsForAll(one, wanted, depth + 1);
  Value* second = HoldsForAll(other, wanted, depth + 1);
  if (both == wanted) return first && second ? b_.CreateAnd(first, second) : nullptr;
  // One of them is enough. That each has lanes of its own this does not see.
  return first && second ? b_.CreateOr(first, second) : first ? first : second;
}

/// The lanes of an affine index are its base plus a pattern, modulo 2^32. Computed in 64 bits they lie in a span that
/// does not wrap: if that stays on the compare's side of the bound, and within 32 bits where the bound does not see to
/// it, all lanes do.
Value* WholeConditions::CompareHoldsForAll(const llvm::ICmpInst& compare, bool wanted) {
  CmpInst::Predicate predicate = wanted ? compare.getPredicate() : compare.getInversePredicate();
  Value *index = compare.getOperand(0), *bound = compare.getOperand(1);
  if (values_.ShapeOf(index).uniform()) {
    std::swap(index, bound);
    predicate = CmpInst::getSwappedPredicate(predicate);
  }
  if (!index->getType()->isIntegerTy(32) || values_.ShapeOf(index).kind != ShapeKind::kAffine ||
      !values_.ShapeOf(bound).uniform() || CmpInst::isEquality(predicate))
    return nullptr;
  const std::optional<Span> span = SpanOf(values_.ShapeOf(index).pattern);
  if (!span) return nullptr;
  const bool is_signed = CmpInst::isSigned(predicate);
  const auto widen = [&](Value* value) {
    return is_signed ? b_.CreateSExt(value, b_.getInt64Ty()) : b_.CreateZExt(value, b_.getInt64Ty());
  };
  Value* base = widen(values_.Base(index));
  Value* limit = widen(values_.Base(bound));
  const auto lane = [&](std::int64_t distance) {
    return b_.CreateAdd(base, b_.getInt64(static_cast<std::uint64_t>(distance)));
  };
  const CmpInst::Predicate wide = llvm::ICmpInst::getSignedPredicate(predicate);
  if (llvm::ICmpInst::isLT(predicate) || llvm::ICmpInst::isLE(predicate))
    return b_.CreateICmp(wide, lane(span->high), limit);
  const std::int64_t most = is_signed ? std::numeric_limits<std::int32_t>::max()
                                      : static_cast<std::int64_t>(std::numeric_limits<std::uint32_t>::max());
  return b_.CreateAnd(b_.CreateICmp(wide, lane(span->low), limit),
                      b_.CreateICmpSLE(lane(span->high), b_.getInt64(static_cast<std::uint64_t>(most))));
}

}  // namespace gridloom::exec
