// Registers, immediates and symbols as values (PTX ISA, 6.4 and 9.2: operands and their sizes).
#include <cstring>

#include "sim/exec/compiler/lift_nan.h"
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

std::uint32_t ComponentIndex(char element) {
  switch (element) {
    case 'y':
    case 'g': return 1;
    case 'z':
    case 'b': return 2;
    case 'w':
    case 'a': return 3;
    default: return 0;
  }
}

llvm::APFloat LiteralFloat(const ptx::FloatLiteral& literal) {
  const llvm::APInt bits(literal.width, literal.bits);
  return llvm::APFloat(literal.width == 32 ? llvm::APFloat::IEEEsingle() : llvm::APFloat::IEEEdouble(), bits);
}

std::uint64_t FloatBits(const ptx::FloatLiteral& literal, const llvm::fltSemantics& semantics) {
  llvm::APFloat value = LiteralFloat(literal);
  bool inexact = false;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.bitcastToAPInt().getZExtValue();
}

// A float literal keeps its bits where the type has its width and is converted otherwise.
std::uint64_t LiteralBits(const ptx::FloatLiteral& literal, ScalarType type) {
  switch (ptx::BitsOf(type)) {
    case 64: return FloatBits(literal, llvm::APFloat::IEEEdouble());
    case 32:
      return type == ScalarType::kF16x2 || type == ScalarType::kBF16x2
                 ? literal.bits
                 : FloatBits(literal, llvm::APFloat::IEEEsingle());
    case 16: return FloatBits(literal, type == ScalarType::kBF16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf());
    default: return literal.bits;
  }
}

}  // namespace

llvm::AllocaInst* Lifter::EntryAlloca(llvm::Type* type, const llvm::Twine& name) {
  llvm::IRBuilder<> entry(entry_end);
  llvm::AllocaInst* slot = entry.CreateAlloca(type, nullptr, name);
  entry.CreateStore(llvm::Constant::getNullValue(type), slot);
  return slot;
}

llvm::AllocaInst* Lifter::RegisterSlot(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component) {
  llvm::AllocaInst*& slot = registers_[{&variable, index, component}];
  if (!slot) {
    llvm::Twine name = llvm::Twine(llvm::StringRef(variable.name.data(), variable.name.size()));
    slot = variable.range_count != 0 ? EntryAlloca(TypeOf(variable.type), name + llvm::Twine(index))
                                     : EntryAlloca(TypeOf(variable.type), name);
  }
  return slot;
}

Value* Lifter::ReadRegister(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component) {
  return b.CreateLoad(TypeOf(variable.type), RegisterSlot(variable, index, component));
}

void Lifter::WriteRegister(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component, Value* value,
                           ScalarType type) {
  llvm::AllocaInst* slot = RegisterSlot(variable, index, component);
  value = Resize(value, slot->getAllocatedType(), ptx::IsSigned(type));
  if (guard) value = b.CreateSelect(guard, value, b.CreateLoad(slot->getAllocatedType(), slot));
  b.CreateStore(value, slot);
}

Value* Lifter::AsInt(Value* value) {
  llvm::Type* type = value->getType();
  if (type->isIntegerTy()) return value;
  Value* bits = b.CreateBitCast(value, b.getIntNTy(type->getScalarSizeInBits()));
  MarkRegisterCast(bits);
  return bits;
}

Value* Lifter::Resize(Value* value, llvm::Type* type, bool is_signed) {
  if (value->getType() == type) return value;
  value = AsInt(value);
  auto* bits = b.getIntNTy(type->getScalarSizeInBits());
  value = is_signed ? b.CreateSExtOrTrunc(value, bits) : b.CreateZExtOrTrunc(value, bits);
  if (type == bits) return value;
  value = b.CreateBitCast(value, type);
  MarkRegisterCast(value);
  return value;
}

Value* Lifter::Immediate(const Operand& operand, ScalarType type) {
  llvm::Type* ir_type = TypeOf(type);
  const unsigned bits = ir_type->getScalarSizeInBits();
  llvm::APInt value(bits, 0);
  if (operand.kind == OperandKind::kFloat) {
    value = llvm::APInt(64, LiteralBits(operand.float_literal, type)).zextOrTrunc(bits);
  } else if (type == ScalarType::kPred) {
    value = llvm::APInt(1, operand.int_literal.value != 0);
  } else {
    value = llvm::APInt(64, operand.int_literal.value);
    value = operand.int_literal.negative ? value.sextOrTrunc(bits) : value.zextOrTrunc(bits);
  }
  return b.CreateBitCast(b.getInt(value), ir_type);
}

Value* Lifter::ReadSymbol(const Operand& operand) {
  if (operand.function) return b.getInt64(FunctionPointer(module.TakeAddress(*operand.function, inst->loc.line)));
  Value* address = VariableAddress(*this, *operand.variable);
  return operand.offset == 0 ? address : b.CreateAdd(address, b.getInt64(static_cast<std::uint64_t>(operand.offset)));
}

Value* Lifter::Read(const Operand& operand, ScalarType type) {
  Value* value = nullptr;
  switch (operand.kind) {
    case OperandKind::kInt:
    case OperandKind::kFloat: return Immediate(operand, type);
    case OperandKind::kSpecial: value = ReadSpecial(*this, operand.text); break;
    case OperandKind::kSymbol: value = ReadSymbol(operand); break;
    case OperandKind::kRegister:
      RefuseWholeVector(operand);
      value = ReadRegister(*operand.variable, operand.index, ComponentIndex(operand.element));
      break;
    default: Refuse("'" + std::string(operand.text) + "' is not a value '" + inst->FullName() + "' can read");
  }
  const bool is_signed = operand.kind == OperandKind::kRegister && ptx::IsSigned(operand.variable->type);
  value = Resize(value, TypeOf(type), is_signed);
  if (operand.negated) value = b.CreateNot(value);
  if (operand.minus) value = value->getType()->isIntegerTy() ? b.CreateNeg(value) : b.CreateFNeg(value);
  return value;
}

void Lifter::Write(const Operand& operand, Value* value, ScalarType type) {
  if (operand.kind == OperandKind::kSink) return;
  if (operand.kind != OperandKind::kRegister) Refuse("destination of '" + inst->FullName() + "' is not a register");
  RefuseWholeVector(operand);
  WriteRegister(*operand.variable, operand.index, ComponentIndex(operand.element), value, type);
}

void Lifter::RefuseWholeVector(const Operand& operand) const {
  if (operand.variable->vector > 1 && operand.element == 0)
    Refuse("'" + inst->FullName() + "' takes no vector: '" + std::string(operand.text) + "'");
}

std::vector<Operand> Lifter::Components(const Operand& operand) const {
  if (operand.kind == OperandKind::kVector) return operand.elements;
  if (operand.kind != OperandKind::kRegister || operand.variable->vector <= 1 || operand.element != 0) return {operand};
  std::vector<Operand> components;
  for (std::uint32_t i = 0; i < operand.variable->vector; ++i) {
    components.push_back(operand);
    components.back().element = "xyzw"[i & 3];
  }
  return components;
}

Value* Lifter::GuardValue(const ptx::Guard& guard) {
  if (!guard.predicate) Refuse("guard '" + std::string(guard.text) + "' is not a declared predicate");
  Value* value = ReadRegister(*guard.predicate, guard.index, 0);
  return guard.negated ? b.CreateNot(value) : value;
}

}  // namespace gridloom::exec
