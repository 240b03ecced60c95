// atom and red (PTX ISA, 9.7.13.5 and 9.7.13.6).
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

struct AtomicName {
  Mod mod;
  AtomicOp on_signed, on_unsigned, on_float;
};

constexpr AtomicName kAtomicNames[] = {
    {Mod::kAdd, AtomicOp::kAdd, AtomicOp::kAdd, AtomicOp::kFAdd},
    {Mod::kMin, AtomicOp::kMin, AtomicOp::kUMin, AtomicOp::kFMin},
    {Mod::kMax, AtomicOp::kMax, AtomicOp::kUMax, AtomicOp::kFMax},
    {Mod::kInc, AtomicOp::kInc, AtomicOp::kInc, AtomicOp::kInc},
    {Mod::kDec, AtomicOp::kDec, AtomicOp::kDec, AtomicOp::kDec},
    {Mod::kAnd, AtomicOp::kAnd, AtomicOp::kAnd, AtomicOp::kAnd},
    {Mod::kOr, AtomicOp::kOr, AtomicOp::kOr, AtomicOp::kOr},
    {Mod::kXor, AtomicOp::kXor, AtomicOp::kXor, AtomicOp::kXor},
    {Mod::kExch, AtomicOp::kExch, AtomicOp::kExch, AtomicOp::kExch},
    {Mod::kCas, AtomicOp::kCas, AtomicOp::kCas, AtomicOp::kCas},
};

}  // namespace

AtomicType AtomicTypeOf(ScalarType type) {
  switch (type) {
    case ScalarType::kF16: return AtomicType::kF16;
    case ScalarType::kBF16: return AtomicType::kBF16;
    case ScalarType::kF16x2: return AtomicType::kF16x2;
    case ScalarType::kBF16x2: return AtomicType::kBF16x2;
    case ScalarType::kF32: return AtomicType::kF32;
    case ScalarType::kF64: return AtomicType::kF64;
    default: break;
  }
  switch (ptx::BitsOf(type)) {
    case 16: return AtomicType::kI16;
    case 64: return AtomicType::kI64;
    case 128: return AtomicType::kI128;
    default: return AtomicType::kI32;
  }
}

AtomicOp AtomicOpOf(Lifter& l, const Instruction& inst, ScalarType type) {
  for (const ptx::Modifier& modifier : inst.modifiers) {
    for (const AtomicName& name : kAtomicNames) {
      if (name.mod != modifier.mod) continue;
      return ptx::IsFloat(type) ? name.on_float : ptx::IsSigned(type) ? name.on_signed : name.on_unsigned;
    }
  }
  l.RefuseInstruction("has no known operation");
}

// "atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero", on shared memory it
// does not (9.7.13.5); .noftz (PTX 9.4) does not anywhere. A generic address decides when it is used.
AtomicFlush AtomicFlushOf(const Instruction& inst, AtomicOp op, ScalarType type) {
  const bool flushes = op == AtomicOp::kFAdd && type == ScalarType::kF32 && !inst.Has(Mod::kNoftz);
  return flushes ? AtomicFlush::kOutsideShared : AtomicFlush::kNever;
}

// atom d, [a], b {, c};  red [a], b. Vector forms are atomic element by element.
template <>
void Lift<semantic::Atom>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool is_red = inst.opcode == Opcode::kRed;
  const std::size_t first = is_red ? 0 : 1;
  const AtomicOp op = AtomicOpOf(l, inst, type);
  const AtomicFlush flush = AtomicFlushOf(inst, op, type);
  const Place place = Locate(l, l.Op(first), inst.space());
  if (place.kind != Place::Kind::kMemory) l.RefuseInstruction("works on a parameter");
  const std::vector<Operand> sources = l.Components(l.Op(first + 1));
  const std::vector<Operand> targets = is_red || l.IsUnused(l.Op(0)) ? std::vector<Operand>() : l.Components(l.Op(0));
  std::vector<Value*> b;
  for (const Operand& source : sources) b.push_back(l.Read(source, type));
  // Every atomic is as strong as can be here; memcheck has to know which ones the program may rely on.
  const bool ordered = l.module.options().memcheck && (inst.Has(Mod::kAcquire) || inst.Has(Mod::kRelease) ||
                                                       inst.Has(Mod::kAcqRel) || inst.Has(Mod::kSc));
  if (ordered) Fence(l, kFenceOrder);
  Value* c = op == AtomicOp::kCas ? l.Read(l.Op(first + 2), type) : nullptr;
  for (std::size_t i = 0; i < b.size(); ++i) {
    Value* address = i == 0 ? place.address : l.b.CreateAdd(place.address, l.b.getInt64(i * ptx::BytesOf(type)));
    Value* old = l.b.Atomic(place.space, op, AtomicTypeOf(type), address, b[i], c, targets.empty(), flush);
    if (i < targets.size()) l.Write(targets[i], old, type);
  }
  if (ordered) Fence(l, kFenceOrder);
  if (inst.Has(Mod::kAsync)) LiftAsyncTail(l, inst, b.size());
}

}  // namespace gridloom::exec
