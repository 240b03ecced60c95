// Operands against their form: kinds, types, widths, state spaces.
#include <algorithm>

#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/special.h"
#include "rewriter/ptx/verifier_impl.h"

namespace gridloom::ptx {
namespace {

std::string Dotted(ScalarType type) { return '.' + std::string(Info(type).text); }

bool IsBits(ScalarType type) { return Info(type).cls == TypeClass::kBits; }

// For registers, .f16x2 is 32 bits that integers may use too.
bool IsIntegerLike(ScalarType type) { return IsSigned(type) || IsUnsigned(type) || type == ScalarType::kF16x2; }

// Types of instructions for which there are no registers (.bf16, .tf32, .e4m3x2): any of their size will do.
bool HasNoRegisters(ScalarType type) {
  return IsFloat(type) && type != ScalarType::kF16 && type != ScalarType::kF16x2 && type != ScalarType::kF32 &&
         type != ScalarType::kF64;
}

// The space a variable lives in, without sub-qualifiers.
StateSpace Plain(StateSpace space) {
  switch (space) {
    case StateSpace::kParamEntry:
    case StateSpace::kParamFunc: return StateSpace::kParam;
    case StateSpace::kSharedCta:
    case StateSpace::kSharedCluster: return StateSpace::kShared;
    default: return space;
  }
}

// Which memory operand of the instruction has this base: 0 for the first address in brackets.
std::size_t MemoryOrdinal(const Instruction& instruction, const Operand& base) {
  std::size_t ordinal = 0;
  for (const Operand& operand : instruction.operands) {
    if (operand.address == nullptr) continue;
    if (!operand.address->base.empty() && &operand.address->base.front() == &base) break;
    ++ordinal;
  }
  return ordinal;
}

StateSpace SpaceModifier(const Instruction& instruction, std::size_t n) {
  for (const Modifier& modifier : instruction.modifiers) {
    if (modifier.mod == Mod::kSpace && n-- == 0)
      return Plain(*SpaceFromText(modifier.text.substr(0, modifier.text.find('['))));
  }
  return StateSpace::kNone;
}

// The space an address must point into; kNone when any will do. Copies name the space of each address; an address after
// those is an mbarrier, which lives in shared memory.
StateSpace WantedSpace(const Instruction& instruction, const Operand& base) {
  switch (instruction.info().cls) {
    case OpClass::kTexture: return StateSpace::kNone;
    case OpClass::kMbarrier: return StateSpace::kShared;
    default: break;
  }
  const std::size_t ordinal = MemoryOrdinal(instruction, base);
  const bool one_space = SpaceModifier(instruction, 1) == StateSpace::kNone;
  if (one_space) return ordinal == 0 ? SpaceModifier(instruction, 0) : StateSpace::kNone;
  return ordinal < 2 ? SpaceModifier(instruction, ordinal) : StateSpace::kShared;
}

}  // namespace

bool RegisterFits(ScalarType declared, ScalarType wanted, bool wider_ok) {
  const bool is_predicate = declared == ScalarType::kPred;
  if (is_predicate || wanted == ScalarType::kPred) return is_predicate && wanted == ScalarType::kPred;
  const unsigned have = BitsOf(declared), want = BitsOf(wanted);
  if (have != want && !(wider_ok && have > want)) return false;
  if (wanted == ScalarType::kBF16 || wanted == ScalarType::kBF16x2) return IsBits(declared);
  if (IsBits(declared) || IsBits(wanted) || HasNoRegisters(wanted)) return true;
  if (IsFloat(wanted)) return declared == wanted;
  return IsIntegerLike(declared);
}

namespace {

// In vectors integers may stand for floats, and not the other way round, as in ptxas 13.5.
bool ElementFits(ScalarType declared, ScalarType wanted) {
  if (BitsOf(declared) != BitsOf(wanted) || declared == ScalarType::kPred) return false;
  if (IsBits(wanted) || HasNoRegisters(wanted)) return true;
  return IsFloat(wanted) ? declared != ScalarType::kF16x2 : IsBits(declared) || IsIntegerLike(declared);
}

/// Of a texture that is sampled, where the first coordinate has another type than the instruction says; else null.
/// ptxas looks at no other.
const Operand* WrongCoordinate(const Instruction& instruction, const AddressOperand& address) {
  const ScalarType type = instruction.type(1);
  const bool samples = instruction.opcode == Opcode::kTex || instruction.opcode == Opcode::kTld4;
  if (!samples || type == ScalarType::kNone) return nullptr;
  for (const Operand& coordinates : address.elements) {
    if (coordinates.kind != OperandKind::kVector) continue;  // a sampler
    if (coordinates.elements.empty()) continue;
    const Operand& first = coordinates.elements.front();
    if (first.kind == OperandKind::kRegister && !ElementFits(first.variable->type, type)) return &first;
  }
  return nullptr;
}

}  // namespace

bool Verifier::Fail(const Operand& operand, std::string message) {
  Error(operand.loc, std::move(message));
  return false;
}

bool Verifier::Mismatch(const Instruction& instruction, const Operand& operand, std::string_view expected) {
  return Fail(operand, "'" + instruction.FullName() + "' expects " + std::string(expected) + ", found '" +
                           PrintOperand(operand) + "'");
}

bool Verifier::VerifyOperand(const Instruction& instruction, const OperandForm& form, const Operand& operand) {
  switch (form.access) {
    case Access::kMemory:
      if (operand.kind != OperandKind::kAddress) return Mismatch(instruction, operand, "an address in brackets");
      return VerifyMemory(instruction, operand);
    case Access::kImmediate:
      return operand.kind == OperandKind::kInt || Mismatch(instruction, operand, "an integer constant");
    case Access::kLabel: return operand.kind == OperandKind::kLabel || Mismatch(instruction, operand, "a label");
    case Access::kTargets:
      return operand.directive != nullptr || Mismatch(instruction, operand, "the label of a .branchtargets");
    default: break;
  }
  if (operand.kind == OperandKind::kPair) return VerifyPair(instruction, form, operand);
  if (operand.kind == OperandKind::kVector) return VerifyVector(instruction, form, operand);
  if (form.list && form.rule != TypeRule::kAny) return Mismatch(instruction, operand, "a list of registers in braces");
  return VerifyScalar(instruction, form, operand, TypeOf(form, instruction));
}

// pair := destination '|' predicate
bool Verifier::VerifyPair(const Instruction& instruction, const OperandForm& form, const Operand& operand) {
  if (!form.pair) return Mismatch(instruction, operand, "one destination");
  OperandForm first = form, second;
  first.pair = false;
  first.discardable = second.discardable = true;
  second.access = Access::kWrite;
  return VerifyOperand(instruction, first, operand.elements[0]) &&
         VerifyScalar(instruction, second, operand.elements[1], ScalarType::kPred);
}

bool Verifier::VerifyVector(const Instruction& instruction, const OperandForm& form, const Operand& operand) {
  const unsigned width = instruction.vector_width();
  if (instruction.info().cls == OpClass::kMove && width == 1) return VerifyPacked(instruction, form, operand);
  if (form.per_vector && width != operand.elements.size()) {
    return Fail(operand, "'" + instruction.FullName() + "' expects " +
                             (width == 1 ? "a scalar" : std::to_string(width) + " elements") + ", found " +
                             std::to_string(operand.elements.size()));
  }
  if (!form.per_vector && !form.list && form.rule != TypeRule::kAny) return Mismatch(instruction, operand, "a scalar");
  return std::ranges::all_of(operand.elements,
                             [&](const Operand& element) { return VerifyElement(instruction, form, element); });
}

// Elements of a vector have the size of the type; `_` stands for one that does not matter.
bool Verifier::VerifyElement(const Instruction& instruction, const OperandForm& form, const Operand& element) {
  const ScalarType type = TypeOf(form, instruction);
  if (element.kind == OperandKind::kSink || (form.reads() && element.kind == OperandKind::kSpecial)) return true;
  const bool is_scalar =
      element.kind == OperandKind::kRegister && (element.variable->vector == 1 || element.element != 0);
  if (is_scalar && type != ScalarType::kNone && ElementFits(element.variable->type, type)) return true;
  OperandForm one = form;
  one.per_vector = false;
  return VerifyScalar(instruction, one, element, type);
}

// mov.b64 %rd1, {%r1, %r2}: the elements share the bits of the type evenly.
bool Verifier::VerifyPacked(const Instruction& instruction, const OperandForm& form, const Operand& operand) {
  const ScalarType type = instruction.type();
  const std::size_t count = operand.elements.size();
  if (!IsBits(type) || (count != 2 && count != 4))
    return Mismatch(instruction, operand, "a .bN type and 2 or 4 elements");
  const std::size_t bits = BitsOf(type) / count;
  for (const Operand& element : operand.elements) {
    if (element.kind != OperandKind::kRegister) {
      if (form.reads() || element.kind == OperandKind::kSink) continue;
      return Mismatch(instruction, element, "a register");
    }
    if (BitsOf(element.variable->type) != bits)
      return Mismatch(instruction, element, std::to_string(bits) + "-bit registers");
  }
  return true;
}

bool Verifier::VerifyScalar(const Instruction& instruction, const OperandForm& form, const Operand& operand,
                            ScalarType type) {
  const bool is_predicate = operand.variable != nullptr && operand.variable->type == ScalarType::kPred;
  if (operand.negated && !is_predicate) return Mismatch(instruction, operand, "a predicate after '!'");
  if (operand.minus && !form.negatable) return Mismatch(instruction, operand, "an operand without '-'");
  switch (operand.kind) {
    case OperandKind::kRegister: return VerifyRegister(instruction, form, operand, type);
    case OperandKind::kInt:
    case OperandKind::kFloat: return VerifyConstant(instruction, form, operand, type);
    case OperandKind::kSpecial: return VerifySpecial(instruction, form, operand);
    case OperandKind::kSymbol: return VerifySymbol(instruction, form, operand);
    case OperandKind::kSink:
      if (form.discardable) return true;
      return Mismatch(instruction, operand, form.writes() ? "a register to write" : "a value");
    case OperandKind::kAddress:
      return form.rule == TypeRule::kAny ? VerifyMemory(instruction, operand)
                                         : Mismatch(instruction, operand, "no address");
    default: return Mismatch(instruction, operand, "a register or a constant");
  }
}

bool Verifier::VerifyRegister(const Instruction& instruction, const OperandForm& form, const Operand& operand,
                              ScalarType type) {
  const Variable& variable = *operand.variable;
  if (operand.offset != 0) return Mismatch(instruction, operand, "a register without an offset");
  if (variable.vector == 1 && operand.element != 0)
    return Mismatch(instruction, operand, "a register without a component: it is no vector");
  const bool whole_vector = variable.vector > 1 && operand.element == 0;
  if (form.per_vector && instruction.vector_width() > 1 && !whole_vector) {
    return Mismatch(instruction, operand, "a vector of " + std::to_string(instruction.vector_width()));
  }
  // Packed or unpacked by mov, as ptxas has it.
  if (whole_vector && instruction.opcode == Opcode::kMov && IsBits(type) &&
      BitsOf(type) == variable.vector * BitsOf(variable.type)) {
    const Operand& result = instruction.operands.front();
    const bool packs_both =
        form.reads() && result.kind == OperandKind::kRegister && result.element == 0 && result.variable->vector > 1;
    return !packs_both || Mismatch(instruction, operand, "a scalar register, as the result is a vector");
  }
  if (whole_vector && (!form.per_vector || instruction.vector_width() != variable.vector)) {
    return Mismatch(instruction, operand, "a scalar register");
  }
  if (type == ScalarType::kNone || RegisterFits(variable.type, type, form.wider_ok)) return true;
  return Fail(operand, "'" + instruction.FullName() + "' expects a register of type " + Dotted(type) + ", found '" +
                           PrintOperand(operand) + "' of type " + Dotted(variable.type));
}

bool Verifier::VerifyConstant(const Instruction& instruction, const OperandForm& form, const Operand& operand,
                              ScalarType type) {
  if (form.writes()) return Mismatch(instruction, operand, "a register to write");
  if (form.per_vector && instruction.vector_width() > 1)
    return Mismatch(instruction, operand, "a vector of " + std::to_string(instruction.vector_width()));
  if (type == ScalarType::kNone) return true;
  if (operand.kind == OperandKind::kInt) {
    return !IsFloat(type) || HasNoRegisters(type) || Mismatch(instruction, operand, "a floating-point constant");
  }
  // Decimal and 0d numbers have 64 bits, 0f ones 32; as bits they must be of that size.
  const bool fits = type == ScalarType::kF32 || type == ScalarType::kF64 ||
                    (IsBits(type) && BitsOf(type) == operand.float_literal.width);
  return fits || Mismatch(instruction, operand, IsInteger(type) ? "an integer" : "a register");
}

// Special registers are read by mov; cvt takes them too.
bool Verifier::VerifySpecial(const Instruction& instruction, const OperandForm& form, const Operand& operand) {
  const SpecialInfo& info = Info(SpecialFromText(operand.text)->special);
  CheckNeeds(operand.loc, [&] { return std::string(operand.text); }, {.ptx = info.ptx, .sm = info.sm});
  if (form.writes()) return Mismatch(instruction, operand, "a register to write");
  // The one that is a constant.
  if (operand.text == "WARP_SZ") return true;
  if (instruction.opcode == Opcode::kMov &&
      (IsFloat(instruction.type()) || BitsOf(instruction.type()) > BitsOf(info.type)))
    return Mismatch(instruction, operand, "a register: special ones have no such type");
  return instruction.Has(Trait::kTakesSpecial) ||
         Mismatch(instruction, operand, "a register (special registers are read by mov)");
}

bool Verifier::VerifySymbol(const Instruction& instruction, const OperandForm& form, const Operand& operand) {
  if (form.writes()) return Mismatch(instruction, operand, "a register to write");
  if (instruction.opcode == Opcode::kCvta) {
    const StateSpace wanted = SpaceModifier(instruction, 0);
    const bool fits = operand.variable != nullptr && Plain(operand.variable->space) == wanted;
    return fits || Mismatch(instruction, operand, "a variable in ." + std::string(TextOf(wanted)));
  }
  if (instruction.opcode == Opcode::kMov && IsFloat(instruction.type()))
    return Mismatch(instruction, operand, "a register: addresses are integers");
  const bool takes = instruction.Has(Trait::kTakesAddress) || form.rule == TypeRule::kAny;
  return takes || Mismatch(instruction, operand, "a register (mov takes an address)");
}

// ---------------------------------------------------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------------------------------------------------

bool Verifier::VerifyMemory(const Instruction& instruction, const Operand& operand) {
  const AddressOperand& address = *operand.address;
  const bool fetches = instruction.info().cls == OpClass::kTexture && !instruction.Has(Trait::kQueries);
  if (fetches && address.elements.empty()) {
    return Mismatch(instruction, operand, "coordinates after the texture or surface");
  }
  const bool anywhere = instruction.space() == StateSpace::kNone || instruction.space() == StateSpace::kGlobal;
  if (operand.selector == "unified" && !anywhere)
    return Mismatch(instruction, operand, "no '.unified' outside of global memory");
  if (const Operand* const wrong = WrongCoordinate(instruction, address))
    return Mismatch(instruction, *wrong, "a coordinate of type " + Dotted(instruction.type(1)));
  return address.base.empty() || VerifyMemoryBase(instruction, address.base.front());
}

bool Verifier::VerifyMemoryBase(const Instruction& instruction, const Operand& base) {
  if (base.kind == OperandKind::kRegister) {
    const ScalarType type = base.variable->type;
    const bool opaque = Info(type).cls == TypeClass::kOpaque;
    return opaque || (IsInteger(type) && !IsFloat(type)) ||
           Mismatch(instruction, base, "an integer register as address");
  }
  if (base.kind != OperandKind::kSymbol) return Mismatch(instruction, base, "a register or a variable as address");
  if (base.variable == nullptr) return Mismatch(instruction, base, "a variable, not a function, as address");
  const StateSpace wanted = WantedSpace(instruction, base), found = Plain(base.variable->space);
  if (wanted == StateSpace::kNone || wanted == found || Info(base.variable->type).cls == TypeClass::kOpaque)
    return true;
  return Fail(base, "'" + instruction.FullName() + "' expects a variable in ." + std::string(TextOf(wanted)) +
                        ", found '" + std::string(base.variable->name) + "' in ." + std::string(TextOf(found)));
}

}  // namespace gridloom::ptx
