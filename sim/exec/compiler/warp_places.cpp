// Where the address of lanes without a pattern is built on a 32-bit index, the check works on that index: two vectors
// of 16 instead of four of 8.
#include "sim/exec/compiler/warp_places.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

using llvm::Value;

Irregular IrregularPlaces::IrregularOf(Value* address, const Access& access) {
  const Shape shape = values_.ShapeOf(address);
  const bool indexed = shape.kind == ShapeKind::kIndexed && access.space != Space::kLocal && shape.scale > 0 &&
                       shape.pattern == LanePattern{};
  if (indexed) {
    // The hardware scales an index by up to 8; the rest of the scale is multiplied in. Words around bytes need byte
    // offsets.
    const unsigned shift =
        access.bytes < 4
            ? 0
            : std::min(3u, static_cast<unsigned>(llvm::countr_zero(static_cast<std::uint64_t>(shape.scale))));
    const std::int64_t factor = shape.scale >> shift;
    const bool aligned =
        shape.scale % access.align == 0 || llvm::isPowerOf2_64(static_cast<std::uint64_t>(shape.scale));
    if (aligned && factor < (1 << 20))
      return {address, nullptr, values_.Lanes(const_cast<Value*>(shape.index)), factor, shift, shape.index_signed};
  }
  return {address, values_.Lanes(address), nullptr, 1, 0, false};
}

/// The lowest index inside the window (i32), and how many steps of the alignment lie above it (i32, 0: none is inside).
/// With several bases the index must be inside for each: the lowest base bounds it from below, the highest one from
/// above.
IndexBounds IrregularPlaces::MakeBounds(const Irregular& at, llvm::ArrayRef<Value*> bases, const Access& access,
                                        const Window& window) {
  const auto i64 = [&](std::int64_t value) { return b_.getInt64(static_cast<std::uint64_t>(value)); };
  const std::int64_t scale = at.factor << at.shift;
  const unsigned rotate = BoundsRotation(at, access);
  const auto floor_divide = [&](Value* value) -> Value* {
    if (llvm::isPowerOf2_64(static_cast<std::uint64_t>(scale)))
      return b_.CreateAShr(value, llvm::Log2_64(static_cast<std::uint64_t>(scale)));
    Value* quotient = b_.CreateSDiv(value, i64(scale));
    Value* rest = b_.CreateSub(value, b_.CreateMul(quotient, i64(scale)));
    return b_.CreateAdd(quotient, b_.CreateAShr(rest, 63));
  };
  Value *near = nullptr, *far = nullptr, *low_bits = nullptr;
  for (Value* base : bases) {
    Value* offset = window.low ? b_.CreateSub(base, window.low) : base;
    near = near ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, near, offset) : offset;
    far = far ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, far, offset) : offset;
    low_bits = low_bits ? b_.CreateOr(low_bits, offset) : offset;
  }
  Value* lowest = b_.CreateNeg(floor_divide(near));
  Value* highest = floor_divide(b_.CreateSub(b_.CreateSub(window.limit, i64(access.bytes)), far));
  // index * factor must stay inside 32 bits; an unsigned index inside these bounds is not negative as a signed one.
  const std::int64_t most = (std::numeric_limits<std::int32_t>::max() - 7) / at.factor >> rotate << rotate;
  lowest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, lowest, i64(at.index_signed ? -most : 0));
  highest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, highest, i64(most));
  Value* steps = b_.CreateAdd(b_.CreateAShr(b_.CreateSub(highest, lowest), rotate), i64(1));
  Value* none = b_.CreateICmpSLT(highest, lowest);
  if (access.align > 1)
    none = b_.CreateOr(none, b_.CreateICmpNE(b_.CreateAnd(low_bits, i64(access.align - 1)), i64(0)));
  steps = b_.CreateSelect(none, i64(0), steps);
  return {b_.CreateTrunc(lowest, b_.getInt32Ty()), b_.CreateTrunc(steps, b_.getInt32Ty())};
}

/// The bits of an index that tell whether its address is aligned.
unsigned IrregularPlaces::BoundsRotation(const Irregular& at, const Access& access) {
  const std::int64_t scale = at.factor << at.shift;
  return scale % access.align == 0 ? 0
                                   : std::countr_zero(access.align) - std::countr_zero(static_cast<unsigned>(scale));
}

/// Bounds for all places, made at the entry where that is possible.
IndexBounds IrregularPlaces::BoundsOf(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window) {
  llvm::SmallVector<Value*, 4> bases;
  if (window.changes || !llvm::all_of(places, [&](const Irregular& at) { return values_.IsEntryValue(at.address); })) {
    for (const Irregular& at : places) bases.push_back(values_.Base(at.address));
    return MakeBounds(places.front(), bases, access, window);
  }
  std::string key = "bounds" + std::to_string(access.bytes) + "." + std::to_string(access.align);
  for (const Irregular& at : places) key += "." + std::to_string(reinterpret_cast<std::uintptr_t>(at.address));
  Value* low = w_.AtEntry(key, [&] {
    for (const Irregular& at : places) bases.push_back(values_.EntryBase(llvm::cast<llvm::Instruction>(at.address)));
    const IndexBounds made = MakeBounds(places.front(), bases, access, window);
    w_.entry_values[key + "steps"] = made.steps;
    return made.low;
  });
  return {low, w_.entry_values[key + "steps"]};
}

/// i1: at all places, which have an index in common where there are several, every active lane is inside the window and
/// aligned.
Value* IrregularPlaces::IrregularInRange(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window) {
  const Irregular& at = places.front();
  Value* outside = nullptr;
  if (at.index) {
    const IndexBounds bounds = BoundsOf(places, access, window);
    Value* steps = b_.CreateSub(at.index, w_.Splat(bounds.low));
    if (const unsigned rotate = BoundsRotation(at, access); rotate != 0) {
      steps =
          b_.CreateIntrinsic(llvm::Intrinsic::fshr, {steps->getType()}, {steps, steps, w_.Splat(b_.getInt32(rotate))});
    }
    outside = b_.CreateICmpUGE(steps, w_.Splat(bounds.steps));
  } else {
    Value* offsets = window.low ? b_.CreateSub(at.lanes, w_.Splat(window.low)) : at.lanes;
    const unsigned shift = std::countr_zero(access.align);
    if (shift != 0) {
      offsets = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {offsets->getType()},
                                   {offsets, offsets, w_.Splat(b_.getInt64(shift))});
    }
    outside = b_.CreateICmpUGE(offsets, w_.Splat(windows_.ScaledLimit(window, shift, access.bytes - access.align)));
  }
  if (w_.divergent) outside = b_.CreateAnd(outside, w_.MaskLanes());
  return b_.CreateICmpEQ(w_.ToBits(outside), b_.getInt32(0));
}

/// The index in units of 1 << shift bytes: <32 x i32>, signed.
Value* IrregularPlaces::ScaledIndex(const Irregular& at) {
  return at.factor == 1 ? at.index
                        : b_.CreateMul(at.index, w_.Splat(b_.getInt32(static_cast<std::uint32_t>(at.factor))));
}

/// What the index counts from.
Value* IrregularPlaces::HostBase(const Irregular& at, const Window& window) {
  Value* base = values_.Base(at.address);
  return b_.CreateIntToPtr(window.host ? b_.CreateAdd(base, window.host) : base, b_.getPtrTy());
}

/// <32 x ptr>: the lanes' host addresses.
Value* IrregularPlaces::HostPointers(const Irregular& at, const Access& access, const Window& window) {
  llvm::Type* pointers = w_.LanesType(b_.getPtrTy());
  if (!at.index) return b_.CreateIntToPtr(windows_.HostLanes(at.lanes, access, window), pointers);
  Value* wide = b_.CreateSExt(ScaledIndex(at), w_.LanesType(b_.getInt64Ty()));
  return b_.CreateGEP(b_.getIntNTy(8u << at.shift), HostBase(at, window), wide);
}

/// One lane's pointer, from what SpillPointers put into memory.
Value* IrregularPlaces::LanePointer(const Irregular& at, Value* spilled, const Window& window, Value* lane) {
  if (!at.index) {
    return b_.CreateIntToPtr(b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), spilled, lane)),
                             b_.getPtrTy());
  }
  return PointerAt(at, window, b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), spilled, lane)));
}

/// The place of a lane's scaled index (i32).
Value* IrregularPlaces::PointerAt(const Irregular& at, const Window& window, Value* index) {
  index = b_.CreateSExt(index, b_.getInt64Ty());
  Value* base = values_.Base(at.address);
  if (window.host) base = b_.CreateAdd(base, window.host);
  return b_.CreateGEP(b_.getIntNTy(8u << at.shift), b_.CreateIntToPtr(base, b_.getPtrTy()), index);
}

Value* IrregularPlaces::SpillPointers(const Irregular& at, const Access& access, const Window& window) {
  return w_.SpillLanes(1, at.index ? ScaledIndex(at) : windows_.HostLanes(at.lanes, access, window));
}

}  // namespace gridloom::exec
