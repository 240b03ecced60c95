// Video instructions: scalar (vadd … vset, vmad, vshl) and SIMD on half-words and bytes (PTX ISA, 9.7.16). The comments
// quote the manual's pseudo-code in short.
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

enum class VideoOp : std::uint8_t { kAdd, kSub, kAbsDiff, kMin, kMax, kAverage, kSet, kShl, kShr };

VideoOp OpOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kVadd:
    case Opcode::kVadd2:
    case Opcode::kVadd4: return VideoOp::kAdd;
    case Opcode::kVsub:
    case Opcode::kVsub2:
    case Opcode::kVsub4: return VideoOp::kSub;
    case Opcode::kVabsdiff:
    case Opcode::kVabsdiff2:
    case Opcode::kVabsdiff4: return VideoOp::kAbsDiff;
    case Opcode::kVmin:
    case Opcode::kVmin2:
    case Opcode::kVmin4: return VideoOp::kMin;
    case Opcode::kVmax:
    case Opcode::kVmax2:
    case Opcode::kVmax4: return VideoOp::kMax;
    case Opcode::kVavrg2:
    case Opcode::kVavrg4: return VideoOp::kAverage;
    case Opcode::kVshl: return VideoOp::kShl;
    case Opcode::kVshr: return VideoOp::kShr;
    default: return VideoOp::kSet;
  }
}

bool IsQuad(Opcode opcode) {
  switch (opcode) {
    case Opcode::kVadd4:
    case Opcode::kVsub4:
    case Opcode::kVabsdiff4:
    case Opcode::kVmin4:
    case Opcode::kVmax4:
    case Opcode::kVavrg4:
    case Opcode::kVset4: return true;
    default: return false;
  }
}

// One part of an operand (.b0 … .b3, .h0, .h1, or the whole), extended as its type says.
Value* VideoPart(Lifter& l, const Operand& operand, ScalarType type) {
  Value* word = l.Read(operand, type);
  const std::string_view part = operand.selector;
  if (part.size() == 2) {
    const unsigned bits = part[0] == 'b' ? 8 : 16;
    word = l.b.CreateTrunc(l.b.CreateLShr(word, bits * static_cast<unsigned>(part[1] - '0')), l.b.getIntNTy(bits));
  }
  return l.Resize(word, l.b.getIntNTy(128), ptx::IsSigned(type));
}

// The value every video operation computes, wide enough to be exact.
Value* VideoValue(Lifter& l, const Instruction& inst, Value* a, Value* b) {
  switch (OpOf(inst.opcode)) {
    case VideoOp::kAdd: return l.b.CreateAdd(a, b);
    case VideoOp::kSub: return l.b.CreateSub(a, b);
    case VideoOp::kAbsDiff: return l.b.CreateSub(MinMax(l, a, b, true, true), MinMax(l, a, b, true, false));
    case VideoOp::kMin: return MinMax(l, a, b, true, false);
    case VideoOp::kMax: return MinMax(l, a, b, true, true);
    case VideoOp::kAverage: {
      // Rounded away from minus infinity's side only when not negative: (a + b + (a + b >= 0)) >> 1
      Value* sum = l.b.CreateAdd(a, b);
      Value* not_negative = l.b.CreateICmpSGE(sum, llvm::Constant::getNullValue(sum->getType()));
      return l.b.CreateAShr(l.b.CreateAdd(sum, l.b.CreateZExt(not_negative, sum->getType())), 1);
    }
    case VideoOp::kShl: return l.b.CreateShl(a, b);
    case VideoOp::kShr: return l.b.CreateAShr(a, b);
    case VideoOp::kSet: return l.b.CreateZExt(l.b.CreateICmp(ComparisonOf(l, inst, true), a, b), a->getType());
  }
  l.RefuseInstruction();
}

}  // namespace

Value* ClampTo(Lifter& l, Value* value, unsigned bits, bool is_signed) {
  const unsigned width = value->getType()->getIntegerBitWidth();
  const llvm::APInt low = is_signed ? llvm::APInt::getSignedMinValue(bits).sext(width) : llvm::APInt(width, 0);
  const llvm::APInt high =
      is_signed ? llvm::APInt::getSignedMaxValue(bits).sext(width) : llvm::APInt::getMaxValue(bits).zext(width);
  return MinMax(l, MinMax(l, value, l.b.getInt(low), true, true), l.b.getInt(high), true, false);
}

// vop.dtype.atype.btype{.sat} d{.dsel}, a{.asel}, b{.bsel} {, c}; vset has no dtype.
//   tmp = a op b;  tmp = saturate(tmp, size of dsel);  d = op2 ? op2(tmp, c) : dsel ? merge(tmp, c) : tmp
// The second operation sees all bits of tmp: 0xffffffff of unsigned operands is more than 1, also when dtype is .s32.
// Not so of a sum or difference, which a GPU cuts to 32 bits before (docs/gpu-checks.md).
template <>
void Lift<semantic::VideoScalar>(Lifter& l, const Instruction& inst) {
  const VideoOp op = OpOf(inst.opcode);
  const std::size_t first = op == VideoOp::kSet ? 0 : 1;
  const ScalarType a_type = inst.type(first), b_type = inst.type(first + 1);
  const ScalarType d_type = op == VideoOp::kSet ? ScalarType::kU32 : inst.type(0);
  const bool is_signed = ptx::IsSigned(d_type);
  Value* a = VideoPart(l, l.Op(1), a_type);
  Value* b = VideoPart(l, l.Op(2), b_type);
  if (op == VideoOp::kShl || op == VideoOp::kShr) {
    Value* limit = l.b.getInt(llvm::APInt(128, 32));
    b = inst.Has(Mod::kWrap) ? l.b.CreateAnd(b, 31) : MinMax(l, b, limit, false, false);
  }
  Value* value = VideoValue(l, inst, a, b);
  const std::string_view part = l.Op(0).selector;
  const unsigned bits = part.empty() ? 32 : part[0] == 'b' ? 8 : 16;
  if (inst.Has(Mod::kSat)) value = ClampTo(l, value, bits, is_signed);
  Value* result = l.b.CreateTrunc(value, l.b.getInt32Ty());
  if (l.OpCount() > 3) {
    Value* c = l.Read(l.Op(3), d_type);
    if (!part.empty()) {
      const unsigned shift = bits * static_cast<unsigned>(part[1] - '0');
      const std::uint32_t mask = ((1u << bits) - 1) << shift;
      result = l.b.CreateOr(l.b.CreateAnd(l.b.CreateShl(result, shift), mask), l.b.CreateAnd(c, l.b.getInt32(~mask)));
    } else if (inst.Has(Mod::kMin) || inst.Has(Mod::kMax)) {
      if (op == VideoOp::kAdd || op == VideoOp::kSub) value = l.Resize(result, value->getType(), is_signed);
      Value* wide = MinMax(l, value, l.Resize(c, value->getType(), is_signed), is_signed, inst.Has(Mod::kMax));
      result = l.b.CreateTrunc(wide, l.b.getInt32Ty());
    } else {
      result = l.b.CreateAdd(result, c);
    }
  }
  l.Write(l.Op(0), result, ScalarType::kB32);
}

// vmad.dtype.atype.btype{.sat}{.shr7,.shr15} d, {-}a, {-}b, {-}c;  .po adds one more
template <>
void Lift<semantic::Vmad>(Lifter& l, const Instruction& inst) {
  auto has = [&](std::string_view text) {
    for (const ptx::Modifier& modifier : inst.modifiers) {
      if (modifier.text == text) return true;
    }
    return false;
  };
  auto plain = [](const Operand& operand) {
    Operand copy = operand;
    copy.minus = false;
    return copy;
  };
  const ScalarType a_type = inst.type(1), b_type = inst.type(2);
  const bool negate_product = l.Op(1).minus != l.Op(2).minus, negate_c = l.Op(3).minus;
  const bool is_signed = ptx::IsSigned(a_type) || ptx::IsSigned(b_type) || negate_product || negate_c;
  auto* wide = l.b.getIntNTy(128);
  Value* product = l.b.CreateMul(VideoPart(l, plain(l.Op(1)), a_type), VideoPart(l, plain(l.Op(2)), b_type));
  Value* c = l.Read(plain(l.Op(3)), ScalarType::kB32);
  std::uint64_t last = 0;
  if (has("po")) {
    last = 1;
  } else if (negate_product) {
    product = l.b.CreateNot(product);
    last = 1;
  } else if (negate_c) {
    c = l.b.CreateNot(c);
    last = 1;
  }
  Value* sum = l.b.CreateAdd(l.b.CreateAdd(product, l.Resize(c, wide, is_signed)), l.b.getInt(llvm::APInt(128, last)));
  if (has("shr7")) sum = l.b.CreateAShr(sum, 7);
  if (has("shr15")) sum = l.b.CreateAShr(sum, 15);
  if (inst.Has(Mod::kSat)) sum = ClampTo(l, sum, 32, is_signed);
  l.Write(l.Op(0), l.b.CreateTrunc(sum, l.b.getInt32Ty()), ScalarType::kB32);
}

// vop2 and vop4: lanes of a and b picked out of the pair {b, a}; lanes the mask of d leaves out come from c, or with
// .add all lanes are added up on c.
template <>
void Lift<semantic::VideoSimd>(Lifter& l, const Instruction& inst) {
  const bool is_set = OpOf(inst.opcode) == VideoOp::kSet;
  const unsigned lanes = IsQuad(inst.opcode) ? 4 : 2;
  const unsigned bits = 32 / lanes;
  const std::size_t first = is_set ? 0 : 1;
  const ScalarType a_type = inst.type(first), b_type = inst.type(first + 1);
  const bool is_signed = !is_set && ptx::IsSigned(inst.type(0));
  std::vector<Value*> pool = l.SplitLanes(l.Read(l.Op(1), ScalarType::kB32), lanes);
  for (Value* lane : l.SplitLanes(l.Read(l.Op(2), ScalarType::kB32), lanes)) pool.push_back(lane);
  // The selector names the highest lane first: "h32" is lane 1 = part 3, lane 0 = part 2.
  auto pick = [&](const Operand& operand, unsigned lane, unsigned from, ScalarType type) {
    const std::string_view selector = operand.selector;
    const unsigned part =
        selector.size() == lanes + 1 ? static_cast<unsigned>(selector[lanes - lane] - '0') : from + lane;
    return l.Resize(pool.at(part & (2 * lanes - 1)), l.b.getInt32Ty(), ptx::IsSigned(type));
  };
  std::vector<Value*> c = l.SplitLanes(l.Read(l.Op(3), ScalarType::kB32), lanes);
  Value* sum = l.Read(l.Op(3), ScalarType::kB32);
  const std::string_view mask = l.Op(0).selector;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (!mask.empty() && mask.find(static_cast<char>('0' + lane)) == std::string_view::npos) continue;
    Value* value = VideoValue(l, inst, pick(l.Op(1), lane, 0, a_type), pick(l.Op(2), lane, lanes, b_type));
    if (inst.Has(Mod::kSat)) value = ClampTo(l, value, bits, is_signed);
    sum = l.b.CreateAdd(sum, value);
    c[lane] = l.b.CreateTrunc(value, l.b.getIntNTy(bits));
  }
  l.Write(l.Op(0), inst.Has(Mod::kAdd) ? sum : l.JoinLanes(c, l.b.getInt32Ty()), ScalarType::kB32);
}

}  // namespace gridloom::exec
