// Addresses whose lanes differ by a pattern, and others by their index.

#include "sim/exec/compiler/warp_source.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::Value;

/// How the lanes' addresses differ, where that is known at compile time.
std::optional<LanePattern> WarpValues::PatternOf(Value* address) {
  const Shape shape = ShapeOf(address);
  if (shape.kind == ShapeKind::kUniform || shape.kind == ShapeKind::kAffine) return shape.pattern;
  if (shape.kind != ShapeKind::kIndexed || ShapeOf(shape.index).kind != ShapeKind::kAffine) return std::nullopt;
  const LanePattern index = ShapeOf(shape.index).pattern;
  LanePattern pattern = shape.pattern;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    pattern[lane] += shape.scale * (index[lane] - PatternExtent(index).first);
  return pattern;
}

std::optional<Linear> WarpValues::AsLinear(Value* address) {
  const Shape shape = ShapeOf(address);
  if (shape.kind == ShapeKind::kUniform || shape.kind == ShapeKind::kAffine)
    return Linear{Base(address), shape.pattern, nullptr};
  const std::optional<LanePattern> pattern = PatternOf(address);
  if (!pattern) return std::nullopt;
  const Shape index = ShapeOf(shape.index);
  // Widening base + pattern lane by lane equals widening the lowest lane, unless the lanes wrap apart in 32 bits.
  const auto [low, high] = PatternExtent(index.pattern);
  Value* base = Base(const_cast<Value*>(shape.index));
  Value* first = b_.CreateAdd(base, b_.getInt32(static_cast<std::uint32_t>(low)));
  Value* last = b_.CreateAdd(base, b_.getInt32(static_cast<std::uint32_t>(high)));
  Value* valid = shape.index_signed ? b_.CreateICmpSGE(last, first) : b_.CreateICmpUGE(last, first);
  Value* wide = shape.index_signed ? b_.CreateSExt(first, b_.getInt64Ty()) : b_.CreateZExt(first, b_.getInt64Ty());
  return Linear{b_.CreateAdd(Base(address), b_.CreateMul(wide, b_.getInt64(static_cast<std::uint64_t>(shape.scale)))),
                *pattern, valid};
}

/// The lanes of a slot as PutFound writes them: addresses, or an index that is cheaper to compare and to write.
FoundLanes WarpValues::FoundLanesOf(Value* root) {
  const Shape& shape = ShapeOf(root);
  const bool indexed = shape.kind == ShapeKind::kIndexed && shape.scale > 0 && shape.pattern == LanePattern{};
  if (!indexed) return {.root = root, .lanes = Lanes(root)};
  return {.root = root,
          .lanes = Lanes(const_cast<Value*>(shape.index)),
          .base = Base(root),
          .unit = shape.scale,
          .index_signed = shape.index_signed};
}

}  // namespace gridloom::exec
