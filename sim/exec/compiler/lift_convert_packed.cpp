// Packed and narrow formats. cvt to and from f16x2, bf16x2, tf32, 8 bits and less, ue8m0; cvt.pack (PTX ISA, 9.7.9.21
// and 9.7.9.22). add, sub, mul and fma of four numbers of 8 bits and less (PTX ISA 9.4, 9.7.6).
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

/// A format of at most 8 bits.
struct NarrowFormat {
  ScalarType pair;  ///< the PTX type of two of them
  unsigned mantissa, bias;
  std::uint32_t largest, nan;  ///< codes; formats without NaN convert it to the largest number
  unsigned bits;               ///< of one element in the pair
};

constexpr NarrowFormat kNarrowFormats[] = {
    {ScalarType::kE4M3x2, 3, 7, 0x7e, 0x7f, 8}, {ScalarType::kE5M2x2, 2, 15, 0x7b, 0x7f, 8},
    {ScalarType::kE2M1x2, 1, 1, 0x7, 0x7, 4},   {ScalarType::kE2M3x2, 3, 1, 0x1f, 0x1f, 8},
    {ScalarType::kE3M2x2, 2, 3, 0x1f, 0x1f, 8},
};

const NarrowFormat* NarrowFormatOf(ScalarType type) {
  for (const NarrowFormat& format : kNarrowFormats) {
    if (format.pair == type) return &format;
  }
  return nullptr;
}

/// Place of the sign in an element: above exponent and mantissa.
unsigned SignBit(const NarrowFormat& format) {
  switch (format.pair) {
    case ScalarType::kE2M1x2: return 3;
    case ScalarType::kE2M3x2:
    case ScalarType::kE3M2x2: return 5;
    default: return 7;
  }
}

/// Four numbers of a format, `stride` bits apart; without a format powers of two (ue8m0).
struct FourFormat {
  ScalarType four, pair;
  unsigned stride;
};

constexpr FourFormat kFourFormats[] = {
    {ScalarType::kE4M3x4, ScalarType::kE4M3x2, 8}, {ScalarType::kE5M2x4, ScalarType::kE5M2x2, 8},
    {ScalarType::kE2M3x4, ScalarType::kE2M3x2, 8}, {ScalarType::kE3M2x4, ScalarType::kE3M2x2, 8},
    {ScalarType::kE2M1x4, ScalarType::kE2M1x2, 4}, {ScalarType::kE2M1P4x4, ScalarType::kE2M1x2, 8},
    {ScalarType::kUE8M0x4, ScalarType::kNone, 8},
};

const FourFormat* FourFormatOf(ScalarType type) {
  const auto* format = std::ranges::find(kFourFormats, type, &FourFormat::four);
  return format == std::end(kFourFormats) ? nullptr : format;
}

bool IsHalfPair(ScalarType type) { return type == ScalarType::kF16x2 || type == ScalarType::kBF16x2; }
ScalarType HalfOf(ScalarType pair) { return pair == ScalarType::kBF16x2 ? ScalarType::kBF16 : ScalarType::kF16; }

}  // namespace

// f32 -> code in the low bits of an i32, to nearest even, beyond the range `beyond`. Normal numbers round in integers;
// adding a power of two whose last place is the format's smallest step rounds subnormal ones.
static Value* EncodeNarrow(llvm::IRBuilder<>& ir, FloatEmitter& emit, Value* x, const NarrowFormat& format,
                           std::uint32_t beyond) {
  Value* bits = emit.Bits(x);
  Value* magnitude = ir.CreateAnd(bits, 0x7fffffff);
  const unsigned drop = 23 - format.mantissa;
  Value* odd = ir.CreateAnd(ir.CreateLShr(magnitude, drop), 1);
  Value* rebased = ir.CreateSub(magnitude, ir.getInt32((127 - format.bias) << 23));
  Value* normal = ir.CreateLShr(ir.CreateAdd(rebased, ir.CreateAdd(odd, ir.getInt32((1u << (drop - 1)) - 1))), drop);
  Value* step = emit.FromBits32((127 + 23 + 1 - format.bias - format.mantissa) << 23);
  Value* small =
      ir.CreateSub(emit.Bits(ir.CreateFAdd(ir.CreateBitCast(magnitude, ir.getFloatTy()), step)), emit.Bits(step));
  Value* is_small = ir.CreateICmpULT(magnitude, ir.getInt32((128 - format.bias) << 23));
  Value* code = ir.CreateSelect(is_small, small, normal);
  Value* sign = ir.CreateShl(ir.CreateLShr(bits, 31), SignBit(format));
  Value* is_nan = emit.IsNaN(x);
  if (beyond == format.largest) {
    code = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, code, ir.getInt32(format.largest));
  } else {
    Value* is_beyond = ir.CreateICmpUGT(code, ir.getInt32(format.largest));
    code = ir.CreateSelect(is_beyond, ir.getInt32(beyond), code);
    if (beyond == format.nan) is_nan = ir.CreateOr(is_nan, is_beyond);
  }
  return ir.CreateSelect(is_nan, ir.getInt32(format.nan), ir.CreateOr(code, sign));
}

// Code -> f32, exactly: the fraction in place, the exponent rebased by a multiplication that also normalises.
static Value* DecodeNarrow(llvm::IRBuilder<>& ir, FloatEmitter& emit, Value* code, const NarrowFormat& format) {
  const unsigned sign_bit = SignBit(format);
  Value* magnitude = ir.CreateAnd(code, (1u << sign_bit) - 1);
  Value* placed = ir.CreateBitCast(ir.CreateShl(magnitude, 23 - format.mantissa), ir.getFloatTy());
  Value* value = ir.CreateFMul(placed, emit.FromBits32((127 + 127 - format.bias) << 23));
  const bool has_infinity = format.pair == ScalarType::kE5M2x2;
  if (has_infinity)
    value = ir.CreateSelect(ir.CreateICmpEQ(magnitude, ir.getInt32(0x7c)), emit.FromBits32(0x7f800000), value);
  const bool has_nan = has_infinity || format.pair == ScalarType::kE4M3x2;
  Value* sign = ir.CreateShl(ir.CreateAnd(ir.CreateLShr(code, sign_bit), 1), 31);
  value = ir.CreateBitCast(ir.CreateOr(emit.Bits(value), sign), ir.getFloatTy());
  if (has_nan)
    value = ir.CreateSelect(ir.CreateICmpUGE(magnitude, ir.getInt32(has_infinity ? 0x7d : 0x7f)),
                            emit.FromBits32(0x7fffffff), value);
  return value;
}

// ue8m0 -> f32: 2^-127 is the only one that is subnormal there.
static Value* DecodeScale(llvm::IRBuilder<>& ir, FloatEmitter& emit, Value* code) {
  Value* wide = ir.CreateZExt(code, ir.getInt32Ty());
  Value* bits = ir.CreateSelect(ir.CreateICmpEQ(wide, ir.getInt32(0)), ir.getInt32(0x400000), ir.CreateShl(wide, 23));
  bits = ir.CreateSelect(ir.CreateICmpEQ(wide, ir.getInt32(0xff)), emit.Bits(emit.FromBits32(0x7fffffff)), bits);
  return ir.CreateBitCast(bits, ir.getFloatTy());
}

// s2f6: a byte in two's complement, in 64ths. f32 divided by its scale -> code in the low bits of an i32: to nearest
// even, beyond the range the ends of it, NaN 127/64 (ISA 5.2.4, 9.7.9.21). f64 holds the quotient by a power of two
// exactly.
static Value* EncodeFixed(llvm::IRBuilder<>& ir, FloatEmitter& emit, Value* x, Value* scale) {
  auto* f64 = ir.getDoubleTy();
  auto number = [&](double value) { return llvm::ConstantFP::get(f64, value); };
  Value* quotient = ir.CreateFPExt(x, f64);
  if (scale != nullptr) quotient = ir.CreateFDiv(quotient, ir.CreateFPExt(scale, f64));
  Value* is_nan = ir.CreateFCmpUNO(quotient, quotient);
  Value* places = ir.CreateFMul(quotient, number(64));
  places = ir.CreateSelect(ir.CreateFCmpOGT(places, number(127)), number(127), places);
  places = ir.CreateSelect(ir.CreateFCmpOLT(places, number(-128)), number(-128), places);
  places = ir.CreateSelect(is_nan, number(127), places);
  Value* rounded = ir.CreateUnaryIntrinsic(llvm::Intrinsic::rint, places);
  return ir.CreateAnd(ir.CreateFPToSI(rounded, emit.Bits(x)->getType()), ir.getInt32(0xff));
}

// Code, an i32 below 256 -> f32, exactly.
static Value* DecodeFixed(llvm::IRBuilder<>& ir, FloatEmitter& emit, Value* code) {
  Value* places = ir.CreateAShr(ir.CreateShl(code, 24), 24);
  return ir.CreateFMul(ir.CreateSIToFP(places, ir.getFloatTy()), emit.FromBits32((127 - 6) << 23));
}

// f32 -> f16 or bf16, as i16: away from zero where the random bits, as many as are cut off of a normal number's
// fraction, and what is cut off carry; else towards zero. Of a subnormal f16 they count below its last place, too. What
// is beyond the range becomes infinity.
static Value* RoundByRandom(llvm::IRBuilder<>& ir, FloatEmitter& emit, Value* x, Value* random, bool to_bfloat) {
  Value* bits = emit.Bits(x);
  Value* magnitude = ir.CreateAnd(bits, 0x7fffffff);
  const unsigned cut = to_bfloat ? 16 : 13;
  random = ir.CreateAnd(random, ir.getInt32((1u << cut) - 1));
  Value* whole = magnitude;
  if (!to_bfloat) {
    Value* const normal = ir.CreateSub(magnitude, ir.getInt32((127 - 15) << 23));
    Value* const places = ir.CreateFMul(ir.CreateBitCast(magnitude, ir.getFloatTy()), emit.F32(0x1p37f));
    Value* const is_small = ir.CreateICmpULT(magnitude, ir.getInt32((128 - 15) << 23));
    Value* const small = ir.CreateFPToUI(ir.CreateSelect(is_small, places, emit.F32(0)), ir.getInt32Ty());
    whole = ir.CreateSelect(is_small, small, normal);
  }
  Value* code = ir.CreateLShr(ir.CreateAdd(whole, random), cut);
  const std::uint32_t infinity = to_bfloat ? 0x7f80 : 0x7c00;
  Value* const is_infinite = ir.CreateICmpEQ(magnitude, ir.getInt32(0x7f800000));
  code = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, code, ir.getInt32(infinity));
  code = ir.CreateSelect(is_infinite, ir.getInt32(infinity), code);
  code = ir.CreateOr(code, ir.CreateLShr(ir.CreateAnd(bits, 0x80000000), 16));
  return ir.CreateTrunc(ir.CreateSelect(emit.IsNaN(x), ir.getInt32(0x7fff), code), ir.getInt16Ty());
}

namespace {

// cvt.rs.f16x2.f32 d, a, b, random: the upper half of the random bits belongs to a.
void LiftCvtRandom(Lifter& l, const Instruction& inst) {
  const ScalarType to = inst.type(0);
  if (!IsHalfPair(to) || inst.type(1) != ScalarType::kF32)
    l.RefuseInstruction("with stochastic rounding is not supported: how random bits lie was not found in words");
  Value* const random = l.Read(l.Op(3), ScalarType::kB32);
  std::vector<Value*> lanes = {l.Read(l.Op(2), ScalarType::kF32), l.Read(l.Op(1), ScalarType::kF32)};
  for (unsigned i = 0; i < 2; ++i) {
    if (inst.Has(Mod::kRelu)) lanes[i] = l.emit.MinMax(lanes[i], l.emit.F32(0), true, true);
    lanes[i] = RoundByRandom(l.b, l.emit, lanes[i], l.b.CreateLShr(random, 16 * i), to == ScalarType::kBF16x2);
    if (inst.Has(Mod::kSatfinite)) lanes[i] = SaturateHalf(l, lanes[i], HalfOf(to));
  }
  l.Write(l.Op(0), l.JoinLanes(lanes, l.TypeOf(to)), to);
}

// cvt.pack.sat.type.s32 {.b32} d, a, b {, c}: a and b saturated to the type and packed, b lowest; with c its bits move
// up by two elements to make room.
void LiftCvtPack(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type(0);
  const unsigned bits = ptx::BitsOf(type);
  auto narrow = [&](const Operand& operand) {
    Value* value = ClampTo(l, l.Resize(l.Read(operand, inst.type(1)), l.b.getInt64Ty(), ptx::IsSigned(inst.type(1))),
                           bits, ptx::IsSigned(type));
    return l.b.CreateAnd(l.b.CreateTrunc(value, l.b.getInt32Ty()), l.b.getInt32((1u << bits) - 1));
  };
  Value* packed = l.b.CreateOr(l.b.CreateShl(narrow(l.Op(1)), bits), narrow(l.Op(2)));
  if (l.OpCount() > 3) packed = l.b.CreateOr(packed, l.b.CreateShl(l.Read(l.Op(3), ScalarType::kB32), 2 * bits));
  l.Write(l.Op(0), packed, ScalarType::kB32);
}

// tf32 is an f32 whose last 13 bits are zero.
void LiftCvtTf32(Lifter& l, const Instruction& inst) {
  Value* x = l.Read(l.Op(1), ScalarType::kF32);
  if (inst.Has(Mod::kRelu)) x = l.emit.MinMax(x, l.emit.F32(0), true, true);
  Value* bits = l.emit.Bits(x);
  Value* bias = l.b.getInt32(0);
  if (inst.Has(Mod::kRna)) bias = l.b.getInt32(0x1000);
  if (inst.Has(Mod::kRn)) bias = l.b.CreateAdd(l.b.CreateAnd(l.b.CreateLShr(bits, 13), 1), l.b.getInt32(0xfff));
  Value* rounded = l.b.CreateAnd(l.b.CreateAdd(bits, bias), l.b.getInt32(~0x1fffu));
  if (inst.Has(Mod::kSatfinite)) {
    Value* infinite = l.b.CreateICmpEQ(l.b.CreateAnd(rounded, 0x7fffffff), l.b.getInt32(0x7f800000));
    rounded = l.b.CreateSelect(infinite, l.b.CreateSub(rounded, l.b.getInt32(0x2000)), rounded);
  }
  l.Write(l.Op(0), l.b.CreateSelect(l.emit.IsNaN(x), l.b.getInt32(0x7fffffff), rounded), ScalarType::kB32);
}

// ue8m0: powers of two from 2^-127 (code 0) to 2^127 (0xfe), NaN 0xff; signs are dropped.
void LiftCvtScale(Lifter& l, const Instruction& inst) {
  if (inst.type(1) == ScalarType::kUE8M0x2) {
    std::vector<Value*> lanes = l.SplitLanes(l.Read(l.Op(1), inst.type(1)), 2);
    for (Value*& lane : lanes) {
      Value* code = l.b.CreateZExt(lane, l.b.getInt16Ty());
      Value* value =
          l.b.CreateSelect(l.b.CreateICmpEQ(code, l.b.getInt16(0)), l.b.getInt16(0x40), l.b.CreateShl(code, 7));
      lane = l.b.CreateSelect(l.b.CreateICmpEQ(code, l.b.getInt16(0xff)), l.b.getInt16(0x7fff), value);
    }
    return l.Write(l.Op(0), l.JoinLanes(lanes, l.b.getInt32Ty()), inst.type(0));
  }
  std::vector<Value*> lanes;
  if (inst.type(1) == ScalarType::kF32) {
    lanes = {l.Read(l.Op(2), ScalarType::kF32), l.Read(l.Op(1), ScalarType::kF32)};
  } else {
    for (Value* half : l.SplitLanes(l.Read(l.Op(1), inst.type(1)), 2)) lanes.push_back(l.emit.BFloatToFloat(half));
  }
  for (Value*& lane : lanes) {
    Value* magnitude = l.b.CreateAnd(l.emit.Bits(lane), 0x7fffffff);
    // Below 2^-126 the exponent field is 0; 2^-127 itself has fraction 0x400000 there.
    Value* exponent = l.b.CreateLShr(magnitude, 23);
    Value* fraction = l.b.CreateAnd(magnitude, 0x7fffff);
    if (inst.Has(Mod::kRp)) {
      Value* exact =
          l.b.CreateSelect(l.b.CreateICmpEQ(exponent, l.b.getInt32(0)), l.b.getInt32(0x400000), l.b.getInt32(0));
      exponent = l.b.CreateAdd(exponent, l.b.CreateZExt(l.b.CreateICmpUGT(fraction, exact), l.b.getInt32Ty()));
    }
    Value* limit = l.b.getInt32(inst.Has(Mod::kSatfinite) ? 0xfe : 0xff);
    Value* code = MinMax(l, exponent, limit, false, false);
    lane = l.b.CreateTrunc(l.b.CreateSelect(l.emit.IsNaN(lane), l.b.getInt32(0xff), code), l.b.getInt8Ty());
  }
  l.Write(l.Op(0), l.JoinLanes(lanes, l.b.getInt16Ty()), inst.type(0));
}

}  // namespace

void LiftCvtPacked(Lifter& l, const Instruction& inst) {
  for (const ptx::Modifier& modifier : inst.modifiers) {
    if (modifier.text == "pack") return LiftCvtPack(l, inst);
  }
  const ScalarType to = inst.type(0), from = inst.type(1);
  if (inst.Has(Mod::kRs)) return LiftCvtRandom(l, inst);
  if (to == ScalarType::kTF32) return LiftCvtTf32(l, inst);
  if (to == ScalarType::kUE8M0x2 || from == ScalarType::kUE8M0x2) return LiftCvtScale(l, inst);
  const NarrowFormat* narrow_to = NarrowFormatOf(to);
  const NarrowFormat* narrow_from = NarrowFormatOf(from);
  // Two f32 (the first for the upper half), or a pair to take apart. `lanes` holds f32, the lower one first.
  std::vector<Value*> lanes;
  const bool scaled = HasText(inst, "scaled::n2::ue8m0");
  const std::size_t inputs = l.OpCount() - (scaled ? 2 : 1);
  if (from == ScalarType::kF32 && inputs == 2) {
    lanes = {l.Read(l.Op(2), from), l.Read(l.Op(1), from)};
  } else if (IsHalfPair(from)) {
    for (Value* half : l.SplitLanes(l.Read(l.Op(1), from), 2)) lanes.push_back(HalfToFloat(l, half, HalfOf(from)));
  } else if (from == ScalarType::kS2F6x2) {
    Value* both = l.Resize(l.Read(l.Op(1), from), l.b.getInt32Ty(), false);
    lanes = {DecodeFixed(l.b, l.emit, l.b.CreateAnd(both, 0xff)),
             DecodeFixed(l.b, l.emit, l.b.CreateAnd(l.b.CreateLShr(both, 8), 0xff))};
  } else if (narrow_from) {
    Value* both = l.Resize(l.Read(l.Op(1), from), l.b.getInt32Ty(), false);
    const std::uint32_t mask = (1u << narrow_from->bits) - 1;
    lanes = {DecodeNarrow(l.b, l.emit, l.b.CreateAnd(both, mask), *narrow_from),
             DecodeNarrow(l.b, l.emit, l.b.CreateAnd(l.b.CreateLShr(both, narrow_from->bits), mask), *narrow_from)};
  } else {
    l.RefuseInstruction();
  }
  std::vector<Value*> scales(2);
  if (scaled) {
    // A scale for each element. What is stored in so few bits times a power of two is exact in f32, or beyond bf16,
    // too.
    const bool to_fixed = to == ScalarType::kS2F6x2;
    if (!to_fixed && (IsHalfPair(from) || from == ScalarType::kF32 || to != ScalarType::kBF16x2)) l.RefuseInstruction();
    scales = l.SplitLanes(l.Read(l.Op(1 + inputs), ScalarType::kB16), 2);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      scales[i] = DecodeScale(l.b, l.emit, scales[i]);
      if (!to_fixed) lanes[i] = l.b.CreateFMul(lanes[i], scales[i]);
    }
  }
  if (inst.Has(Mod::kRelu)) {
    for (Value*& lane : lanes) lane = l.emit.MinMax(lane, l.emit.F32(0), true, true);
  }
  if (narrow_to) {
    Value* low = EncodeNarrow(l.b, l.emit, lanes[0], *narrow_to, narrow_to->largest);
    Value* high = EncodeNarrow(l.b, l.emit, lanes[1], *narrow_to, narrow_to->largest);
    return l.Write(l.Op(0), l.Resize(l.b.CreateOr(low, l.b.CreateShl(high, narrow_to->bits)), l.TypeOf(to), false), to);
  }
  if (to == ScalarType::kS2F6x2) {
    Value* low = EncodeFixed(l.b, l.emit, lanes[0], scales[0]);
    Value* high = EncodeFixed(l.b, l.emit, lanes[1], scales[1]);
    return l.Write(l.Op(0), l.Resize(l.b.CreateOr(low, l.b.CreateShl(high, 8)), l.TypeOf(to), false), to);
  }
  if (!IsHalfPair(to)) l.RefuseInstruction();
  const Rounding rounding = inst.Has(Mod::kRz) ? Rounding::kRz : Rounding::kRn;
  for (Value*& lane : lanes) {
    lane = RoundToHalf(l, lane, HalfOf(to), rounding);
    if (inst.Has(Mod::kSatfinite)) lane = SaturateHalf(l, lane, HalfOf(to));
  }
  l.Write(l.Op(0), l.JoinLanes(lanes, l.TypeOf(to)), to);
}

namespace {

/// Four numbers as f32, the lowest first.
std::vector<Value*> ReadFour(Lifter& l, const Operand& operand, ScalarType type) {
  const FourFormat* const four = FourFormatOf(type);
  if (four == nullptr) l.RefuseInstruction();
  const ScalarType bits = ptx::BitsOf(type) == 16 ? ScalarType::kB16 : ScalarType::kB32;
  Value* all = l.Resize(l.Read(operand, bits), l.b.getInt32Ty(), false);
  std::vector<Value*> numbers;
  for (unsigned i = 0; i < 4; ++i) {
    Value* code = l.b.CreateLShr(all, i * four->stride);
    numbers.push_back(four->pair == ScalarType::kNone ? DecodeScale(l.b, l.emit, l.b.CreateTrunc(code, l.b.getInt8Ty()))
                                                      : DecodeNarrow(l.b, l.emit, code, *NarrowFormatOf(four->pair)));
  }
  return numbers;
}

}  // namespace

bool IsFourNarrow(ScalarType type) { return type == ScalarType::kE4M3x4 || type == ScalarType::kE5M2x4; }

// add, sub, mul and fma of four narrow numbers, each rounded once, to e4m3 or e5m2. Without .satfinite what is beyond
// e4m3 becomes NaN and what is beyond e5m2 infinity. Products of two are exact in f64.
void LiftFourNarrow(Lifter& l, const Instruction& inst) {
  const ScalarType to = inst.type();
  const NarrowFormat& format = *NarrowFormatOf(FourFormatOf(to)->pair);
  const std::uint32_t beyond = inst.Has(Mod::kSatfinite)   ? format.largest
                               : to == ScalarType::kE5M2x4 ? 0x7cu
                                                           : format.nan;
  const bool multiplies = inst.opcode == Opcode::kMul || inst.opcode == Opcode::kFma;
  const std::vector<Value*> a = ReadFour(l, l.Op(1), inst.type(1));
  const std::vector<Value*> b = ReadFour(l, l.Op(2), multiplies ? inst.type(2) : to);
  const std::vector<Value*> c = inst.opcode == Opcode::kFma ? ReadFour(l, l.Op(3), to) : b;
  Value* packed = l.b.getInt32(0);
  for (unsigned i = 0; i < 4; ++i) {
    const Exact exact = inst.opcode == Opcode::kFma   ? l.emit.Fma(a[i], b[i], c[i], false)
                        : inst.opcode == Opcode::kMul ? l.emit.Mul(a[i], b[i])
                        : inst.opcode == Opcode::kSub ? l.emit.Add(a[i], l.b.CreateFNeg(b[i]), false)
                                                      : l.emit.Add(a[i], b[i], false);
    Value* code = EncodeNarrow(l.b, l.emit, l.emit.RoundToOdd(exact), format, beyond);
    packed = l.b.CreateOr(packed, l.b.CreateShl(code, 8 * i));
  }
  l.Write(l.Op(0), packed, ScalarType::kB32);
}

}  // namespace gridloom::exec
