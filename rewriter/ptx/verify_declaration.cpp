// Variables (PTX ISA, 5.1 to 5.4): which types live in which state spaces, arrays, initial values.
#include "rewriter/ptx/verifier_impl.h"

namespace gridloom::ptx {
namespace {

std::string Quoted(const Variable& variable) { return "'" + std::string(variable.name) + "'"; }

// Types with a special meaning in one instruction only: there is no variable of such a type.
bool IsInstructionTypeOnly(ScalarType type) {
  switch (type) {
    case ScalarType::kB1:
    case ScalarType::kU2:
    case ScalarType::kS2:
    case ScalarType::kU4:
    case ScalarType::kS4:
    case ScalarType::kBF16:
    case ScalarType::kBF16x2:
    case ScalarType::kTF32:
    case ScalarType::kF32x2:
    case ScalarType::kU16x2:
    case ScalarType::kS16x2:
    case ScalarType::kU8x4:
    case ScalarType::kS8x4: return true;
    default: return type >= ScalarType::kE4M3 && type <= ScalarType::kB4x16P64;
  }
}

}  // namespace

void Verifier::VerifyVariable(const Variable& variable, bool in_body) {
  VerifyVariableType(variable);
  VerifyArray(variable, in_body);
  if (variable.has_initializer) VerifyInitializer(variable);
  if (!in_body && variable.space == StateSpace::kReg && ptx_ >= 30) {
    Error(variable.loc, "registers are declared inside functions");
  }
  if (variable.HasAttribute("managed"))
    CheckNeeds(variable.loc, [] { return ".attribute(.managed)"; }, {.ptx = 40, .sm = 30});
}

void Verifier::VerifyVariableType(const Variable& variable) {
  const TypeClass cls = Info(variable.type).cls;
  const std::string type = '.' + std::string(Info(variable.type).text);
  if (IsInstructionTypeOnly(variable.type)) return Error(variable.loc, type + " is no type for variables");
  if (cls == TypeClass::kPredicate && variable.space != StateSpace::kReg) {
    return Error(variable.loc, "predicate " + Quoted(variable) + " must be a register");
  }
  if (cls == TypeClass::kOpaque && (variable.space == StateSpace::kLocal || variable.space == StateSpace::kShared)) {
    return Error(variable.loc, type + " variables live in .global, .param or .reg");
  }
  if (variable.vector > 4 || (variable.vector > 1 && (cls == TypeClass::kPredicate || variable.element_bytes() > 16))) {
    return Error(variable.loc, "no vector of " + std::to_string(variable.vector) + " " + type + ": at most 128 bits");
  }
  if (variable.is_pointer && BytesOf(variable.type) < 4) Error(variable.loc, "a .ptr parameter has 32 or 64 bits");
}

void Verifier::VerifyArray(const Variable& variable, bool in_body) {
  if (variable.space == StateSpace::kReg) {
    if (!variable.dims.empty()) Error(variable.loc, "register " + Quoted(variable) + " cannot be an array");
    return;
  }
  if (variable.dims.empty() || variable.dims.front() != 0 || variable.space == StateSpace::kParam) return;
  const bool open_ok = variable.linkage == Linkage::kExtern || (in_body && variable.space == StateSpace::kShared);
  if (!open_ok) Error(variable.loc, "array " + Quoted(variable) + " needs a size, or .extern before it");
}

// ---------------------------------------------------------------------------------------------------------------------
// Initial values (ISA 5.4.4)
// ---------------------------------------------------------------------------------------------------------------------

void Verifier::VerifyInitializer(const Variable& variable) {
  if (variable.space != StateSpace::kGlobal && variable.space != StateSpace::kConst) {
    return Error(variable.loc, "only .global and .const variables have initial values");
  }
  if (variable.linkage == Linkage::kExtern) return Error(variable.loc, "an .extern variable has no initial value");
  if (Info(variable.type).cls == TypeClass::kOpaque) return;
  const std::uint64_t count = variable.element_count() * variable.vector;
  for (const Initializer& element : variable.initializer) {
    if (element.element >= count) {
      return Error(variable.loc,
                   "more initial values than " + Quoted(variable) + " has elements (" + std::to_string(count) + ")");
    }
    if (!element.empty && !InitializerFits(variable, element)) return;
  }
}

bool Verifier::InitializerFits(const Variable& variable, const Initializer& element) {
  const std::string type = '.' + std::string(Info(variable.type).text);
  if (std::holds_alternative<FloatLiteral>(element.value)) {
    if (variable.type == ScalarType::kF32 || variable.type == ScalarType::kF64) return true;
    Error(variable.loc, "a floating-point initial value does not fit type " + type);
    return false;
  }
  if (std::holds_alternative<IntLiteral>(element.value)) {
    if (!IsFloat(variable.type)) return true;
    Error(variable.loc, "an integer initial value does not fit type " + type);
    return false;
  }
  const Operand& symbol = std::get<Operand>(element.value);
  if (symbol.variable == nullptr && symbol.function == nullptr) {
    Error(symbol.loc, "undefined symbol '" + std::string(symbol.text) + "'");
    return false;
  }
  const bool wide_enough =
      element.mask != 0 ? IsInteger(variable.type) : IsInteger(variable.type) && BytesOf(variable.type) >= 4;
  if (!wide_enough) Error(symbol.loc, "an address does not fit type " + type);
  return wide_enough;
}

}  // namespace gridloom::ptx
