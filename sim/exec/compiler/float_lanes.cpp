#include "sim/exec/compiler/float_lanes.h"

#include "sim/exec/compiler/lift_nan.h"

namespace gridloom::exec {
namespace {

using ptx::ScalarType;

bool IsHalf(ScalarType type) { return type == ScalarType::kF16 || type == ScalarType::kF16x2; }
bool IsBFloat(ScalarType type) { return type == ScalarType::kBF16 || type == ScalarType::kBF16x2; }

}  // namespace

FloatLanes::Lanes FloatLanes::Split(Value* packed, unsigned lanes) {
  if (!packed->getType()->isIntegerTy()) packed = emit_.Bits(packed);
  const unsigned bits = packed->getType()->getIntegerBitWidth() / lanes;
  Lanes parts;
  for (unsigned i = 0; i < lanes; ++i) {
    parts.push_back(b_.CreateTrunc(i == 0 ? packed : b_.CreateLShr(packed, i * bits), b_.getIntNTy(bits)));
  }
  return parts;
}

FloatLanes::Value* FloatLanes::Join(const Lanes& lanes, llvm::Type* type) {
  auto* whole = b_.getIntNTy(type->getScalarSizeInBits());
  const unsigned bits = whole->getIntegerBitWidth() / static_cast<unsigned>(lanes.size());
  Value* packed = nullptr;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    Value* lane = lanes[i];
    if (!lane->getType()->isIntegerTy()) {
      lane = emit_.Bits(lane);
      MarkRegisterCast(lane);  // an f32 of .f32x2: its bits are seen in the pair
    }
    Value* part = b_.CreateZExt(lane, whole);
    if (i != 0) part = b_.CreateShl(part, i * bits);
    packed = packed ? b_.CreateOr(packed, part) : part;
  }
  return b_.CreateBitCast(packed, type);
}

FloatLanes::Lanes FloatLanes::Unpack(Value* packed, ScalarType type, bool ftz) {
  Lanes lanes{packed};
  if (ptx::Info(type).lanes > 1) lanes = Split(packed, ptx::Info(type).lanes);
  for (Value*& lane : lanes) {
    if (type == ScalarType::kF32x2) lane = b_.CreateBitCast(lane, b_.getFloatTy());
    if (IsBFloat(type)) lane = emit_.BFloatToFloat(lane);
    if (IsHalf(type)) lane = emit_.HalfToFloat(ftz ? FlushHalf(lane) : lane);
    if (ftz && !IsHalf(type) && type != ScalarType::kF64) lane = emit_.Flush(lane);
  }
  return lanes;
}

FloatLanes::Value* FloatLanes::FlushHalf(Value* half) {
  Value* small = b_.CreateICmpEQ(b_.CreateAnd(half, 0x7c00), b_.getInt16(0));
  return b_.CreateSelect(small, b_.CreateAnd(half, 0x8000), half);
}

FloatLanes::Value* FloatLanes::Pack(Lanes lanes, ScalarType type, FloatModifiers modifiers, llvm::Type* ir_type) {
  for (Value*& lane : lanes) {
    if (modifiers.sat) lane = emit_.Saturate(lane);
    if (modifiers.relu) lane = emit_.MinMax(lane, llvm::ConstantFP::get(lane->getType(), 0.0), true, true);
    if (modifiers.ftz && !IsHalf(type) && type != ScalarType::kF64) lane = emit_.Flush(lane);
    if (IsBFloat(type)) lane = emit_.FloatToBFloat(lane);
    if (IsHalf(type)) lane = emit_.FloatToHalf(lane);
    if (IsHalf(type) && modifiers.ftz) lane = FlushHalf(lane);
  }
  return lanes.size() == 1 ? b_.CreateBitCast(lanes[0], ir_type) : Join(lanes, ir_type);
}

FloatLanes::Value* FloatLanes::Fma(ScalarType type, Value* a, Value* b, Value* c) {
  // The product of two f16 is exact in f32; the sum must not be rounded twice.
  if (IsHalf(type)) return emit_.AddToOdd(b_.CreateFMul(a, b), c);
  if (IsBFloat(type)) return emit_.RoundToOdd(emit_.Fma(a, b, c, false));
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

FloatLanes::Value* FloatLanes::ChangeSigns(Value* packed, ScalarType type, bool ftz, bool clear) {
  Lanes parts = Split(packed, ptx::Info(type).lanes);
  for (Value*& part : parts) {
    const unsigned bits = part->getType()->getIntegerBitWidth();
    if (ftz) part = IsHalf(type) ? FlushHalf(part) : emit_.Bits(emit_.Flush(b_.CreateBitCast(part, b_.getFloatTy())));
    Value* sign = b_.getInt(llvm::APInt::getSignMask(bits));
    part = clear ? b_.CreateAnd(part, b_.CreateNot(sign)) : b_.CreateXor(part, sign);
  }
  return Join(parts, packed->getType());
}

FloatLanes::Value* FloatLanes::Negate(Value* packed, ScalarType type, bool ftz) {
  return ChangeSigns(packed, type, ftz, false);
}
FloatLanes::Value* FloatLanes::Absolute(Value* packed, ScalarType type, bool ftz) {
  return ChangeSigns(packed, type, ftz, true);
}

}  // namespace gridloom::exec
