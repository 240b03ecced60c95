// Comparisons, selection and data movement (PTX ISA, 9.7.6, 9.7.9.1).
#include "rewriter/ptx/special.h"
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

using Predicate = llvm::CmpInst::Predicate;

struct Comparison {
  Mod op;
  Predicate signed_int, unsigned_int, floating;
};

constexpr Predicate kNone = Predicate::BAD_ICMP_PREDICATE;

// .lo .ls .hi .hs are the unsigned ones; .equ … .geu hold for unordered operands too; .num and .nan test for order.
constexpr Comparison kComparisons[] = {
    {Mod::kEq, Predicate::ICMP_EQ, Predicate::ICMP_EQ, Predicate::FCMP_OEQ},
    {Mod::kNe, Predicate::ICMP_NE, Predicate::ICMP_NE, Predicate::FCMP_ONE},
    {Mod::kLt, Predicate::ICMP_SLT, Predicate::ICMP_ULT, Predicate::FCMP_OLT},
    {Mod::kLe, Predicate::ICMP_SLE, Predicate::ICMP_ULE, Predicate::FCMP_OLE},
    {Mod::kGt, Predicate::ICMP_SGT, Predicate::ICMP_UGT, Predicate::FCMP_OGT},
    {Mod::kGe, Predicate::ICMP_SGE, Predicate::ICMP_UGE, Predicate::FCMP_OGE},
    {Mod::kLo, Predicate::ICMP_ULT, Predicate::ICMP_ULT, kNone},
    {Mod::kLs, Predicate::ICMP_ULE, Predicate::ICMP_ULE, kNone},
    {Mod::kHi, Predicate::ICMP_UGT, Predicate::ICMP_UGT, kNone},
    {Mod::kHs, Predicate::ICMP_UGE, Predicate::ICMP_UGE, kNone},
    {Mod::kEqu, kNone, kNone, Predicate::FCMP_UEQ},
    {Mod::kNeu, kNone, kNone, Predicate::FCMP_UNE},
    {Mod::kLtu, kNone, kNone, Predicate::FCMP_ULT},
    {Mod::kLeu, kNone, kNone, Predicate::FCMP_ULE},
    {Mod::kGtu, kNone, kNone, Predicate::FCMP_UGT},
    {Mod::kGeu, kNone, kNone, Predicate::FCMP_UGE},
    {Mod::kNum, kNone, kNone, Predicate::FCMP_ORD},
    {Mod::kNanCmp, kNone, kNone, Predicate::FCMP_UNO},
};

const Comparison* FindComparison(const Instruction& inst) {
  for (const ptx::Modifier& modifier : inst.modifiers) {
    for (const Comparison& comparison : kComparisons) {
      if (comparison.op == modifier.mod) return &comparison;
    }
  }
  return nullptr;
}

}  // namespace

llvm::CmpInst::Predicate ComparisonOf(Lifter& l, const Instruction& inst, bool is_signed) {
  const Comparison* comparison = FindComparison(inst);
  if (!comparison || comparison->signed_int == kNone) l.RefuseInstruction("has no comparison operator for integers");
  return is_signed ? comparison->signed_int : comparison->unsigned_int;
}

namespace {

// Result of the instruction's comparison for every lane of the type (two for f16x2 and bf16x2).
std::vector<Value*> Compare(Lifter& l, const Instruction& inst, ScalarType type) {
  const Comparison* comparison = FindComparison(inst);
  if (!comparison) l.RefuseInstruction("has no comparison operator");
  const bool is_float = ptx::IsFloat(type);
  const Predicate predicate = is_float              ? comparison->floating
                              : ptx::IsSigned(type) ? comparison->signed_int
                                                    : comparison->unsigned_int;
  if (predicate == kNone) l.RefuseInstruction("has a comparison operator that does not go with its type");
  std::vector<Value*> results;
  if (is_float) {
    const std::vector<Value*> a = l.ReadFloatLanes(l.Op(1), type, inst.Has(Mod::kFtz));
    const std::vector<Value*> b = l.ReadFloatLanes(l.Op(2), type, inst.Has(Mod::kFtz));
    for (std::size_t i = 0; i < a.size(); ++i) results.push_back(l.b.CreateFCmp(predicate, a[i], b[i]));
  } else {
    results.push_back(l.b.CreateICmp(predicate, l.Read(l.Op(1), type), l.Read(l.Op(2), type)));
  }
  return results;
}

}  // namespace

// .and .or .xor with the predicate operand, when there is one.
Value* CombinePredicate(Lifter& l, const Instruction& inst, Value* compared, std::size_t operand) {
  if (operand >= l.OpCount()) return compared;
  Value* c = l.ReadPredicate(l.Op(operand));
  if (inst.Has(Mod::kAnd)) return l.b.CreateAnd(compared, c);
  if (inst.Has(Mod::kOr)) return l.b.CreateOr(compared, c);
  if (inst.Has(Mod::kXor)) return l.b.CreateXor(compared, c);
  l.RefuseInstruction("has a third source but no .and, .or or .xor");
}

// setp: p, or p|q where q is the outcome of the opposite comparison (for packed types, of the upper half).
template <>
void Lift<semantic::Setp>(Lifter& l, const Instruction& inst) {
  const std::vector<Value*> compared = Compare(l, inst, inst.type());
  const bool pair = l.Op(0).kind == OperandKind::kPair;
  Value* p = CombinePredicate(l, inst, compared[0], 3);
  Value* q = nullptr;
  if (pair) q = CombinePredicate(l, inst, compared.size() > 1 ? compared[1] : l.b.CreateNot(compared[0]), 3);
  l.Write(pair ? l.Op(0).elements[0] : l.Op(0), p, ScalarType::kPred);
  if (pair) l.Write(l.Op(0).elements[1], q, ScalarType::kPred);
}

// set: 1.0 for a float destination, all ones for an integer one.
template <>
void Lift<semantic::Set>(Lifter& l, const Instruction& inst) {
  const ScalarType to = inst.type(0), from = inst.type(1);
  std::vector<Value*> lanes = Compare(l, inst, from);
  const unsigned bits = ptx::BitsOf(to) / static_cast<unsigned>(lanes.size());
  std::uint64_t one = ~std::uint64_t{0};
  if (to == ScalarType::kF32) one = 0x3f800000;
  if (to == ScalarType::kF16 || to == ScalarType::kF16x2) one = 0x3c00;
  if (to == ScalarType::kBF16 || to == ScalarType::kBF16x2) one = 0x3f80;
  for (Value*& lane : lanes) {
    lane = l.b.CreateSelect(CombinePredicate(l, inst, lane, 3), l.b.getInt(llvm::APInt(64, one).trunc(bits)),
                            l.b.getIntN(bits, 0));
  }
  l.Write(l.Op(0), l.JoinLanes(lanes, l.TypeOf(to)), to);
}

template <>
void Lift<semantic::Selp>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  l.Write(l.Op(0), l.b.CreateSelect(l.ReadPredicate(l.Op(3)), l.Read(l.Op(1), type), l.Read(l.Op(2), type)), type);
}

// slct: c >= 0 ? a : b; a NaN selects b.
template <>
void Lift<semantic::Slct>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type(0), test = inst.type(1);
  Value* c = l.Read(l.Op(3), test);
  Value* zero = llvm::Constant::getNullValue(c->getType());
  Value* condition = test == ScalarType::kF32 ? l.b.CreateFCmpOGE(c, zero) : l.b.CreateICmpSGE(c, zero);
  // Subnormal inputs flushed by .ftz compare greater or equal to zero whatever their sign.
  if (test == ScalarType::kF32 && inst.Has(Mod::kFtz)) condition = l.b.CreateFCmpOGE(Flush(l, c), zero);
  l.Write(l.Op(0), l.b.CreateSelect(condition, l.Read(l.Op(1), type), l.Read(l.Op(2), type)), type);
}

// mov, with packing `mov.b64 d, {lo, hi}` and unpacking `mov.b64 {lo, hi}, a`, where a register declared with .v2 or
// .v4 may be the vector; vectors move component by component.
template <>
void Lift<semantic::Mov>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  const Operand& dst = l.Op(0);
  const Operand& src = l.Op(1);
  if (inst.vector_width() > 1) {
    const std::vector<Operand> to = l.Components(dst);
    std::vector<Operand> from = l.Components(src);
    if (from.size() == 1 && src.kind == OperandKind::kSpecial) {
      for (std::size_t i = 0; i < to.size(); ++i)
        l.Write(to[i], l.Resize(ReadSpecialComponent(l, src.text, i), l.TypeOf(type), false), type);
      return;
    }
    if (to.size() != from.size()) l.RefuseInstruction("moves between vectors of different widths");
    std::vector<Value*> values;
    for (const Operand& operand : from) values.push_back(l.Read(operand, type));
    for (std::size_t i = 0; i < to.size(); ++i) l.Write(to[i], values[i], type);
    return;
  }
  const std::vector<Operand> to = l.Components(dst), from = l.Components(src);
  const bool packs = src.kind == OperandKind::kVector || from.size() > 1,
             unpacks = dst.kind == OperandKind::kVector || to.size() > 1;
  if (packs && unpacks) l.RefuseInstruction("moves a vector to a vector without saying how wide they are");
  const auto fits = [&](const Operand& operand, std::size_t parts) {
    return operand.kind == OperandKind::kVector || ptx::BitsOf(operand.variable->type) * parts == ptx::BitsOf(type);
  };
  if ((packs && !fits(src, from.size())) || (unpacks && !fits(dst, to.size())))
    l.RefuseInstruction("has a vector of another size");
  if (packs) {
    const std::size_t lanes = from.size();
    std::vector<Value*> parts;
    auto* lane_type = l.b.getIntNTy(ptx::BitsOf(type) / static_cast<unsigned>(lanes));
    for (const Operand& operand : from) {
      const ScalarType bits = BitsType(lane_type->getIntegerBitWidth());
      parts.push_back(l.Resize(l.Read(operand, bits), lane_type, false));
    }
    return l.Write(dst, l.JoinLanes(parts, l.TypeOf(type)), type);
  }
  if (unpacks) {
    const std::vector<Value*> parts = l.SplitLanes(l.Read(src, type), static_cast<unsigned>(to.size()));
    for (std::size_t i = 0; i < parts.size(); ++i)
      l.Write(to[i], parts[i], BitsType(parts[i]->getType()->getIntegerBitWidth()));
    return;
  }
  l.Write(dst, l.Read(src, type), type);
}

}  // namespace gridloom::exec
