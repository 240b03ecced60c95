// What a few instructions without control flow do to registers: those that code of slices may have. The values are a
// matter of the caller: terms for the proof (proof.cpp), numbers for tests.
//
// A Domain has a type Value, and
//   Value Number(std::uint32_t), Special(std::string_view), Constant(std::int32_t offset) of bank 0
//   Value Add(Value, Value), Negate(Value), Multiply(Value, Value), High(Value, Value), ShiftRight(Value, Value)
// all modulo 2^32; High is the upper half of the unsigned product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "rewriter/machine/print.h"
#include "rewriter/machine/registers.h"
#include "rewriter/machine/slice/constants.h"

namespace gridloom::machine {

template <typename Domain>
class Executor {
 public:
  using Value = typename Domain::Value;

  explicit Executor(Domain& domain) : domain_(domain) {}

  /// Registers that were written; what is not in here has the value that it had.
  std::map<unsigned, Value> general{};
  std::map<unsigned, Value> uniform{};

  Status Step(const Instruction& instruction) {
    const std::string_view name = instruction.format->name;
    if (HasPredicates(instruction)) return Unknown(instruction);
    if (name == "NOP") return {};
    if (name == "S2R") return Set(instruction, domain_.Special(SpecialReadOf(instruction)));
    if (name == "LDC" || name == "ULDC") return Load(instruction);
    if (name == "R2UR" && instruction.format->operands.size() == 3 && !HasModifier(instruction, ".OR"))
      return SetUniform(instruction, Source(instruction, 2));
    if (name == "IADD3")
      return Set(instruction, Sum(Sum(Source(instruction, 3), Source(instruction, 4)), Source(instruction, 5)));
    if (name == "IMAD" && !HasModifier(instruction, ".X")) {
      return Set(instruction,
                 Sum(domain_.Multiply(Source(instruction, 2), Source(instruction, 3)), Source(instruction, 4)));
    }
    if (name == "IMAD.HI" && HasModifier(instruction, ".U32") && IsZero(instruction, 4))
      return Set(instruction, domain_.High(Source(instruction, 2), Source(instruction, 3)));
    const bool plain_shift = HasModifier(instruction, ".R") && HasModifier(instruction, ".U32") &&
                             HasModifier(instruction, ".HI") && !HasModifier(instruction, ".W");
    if (name == "SHF" && plain_shift && IsZero(instruction, 1))
      return Set(instruction, domain_.ShiftRight(Source(instruction, 3), Source(instruction, 2)));
    return Unknown(instruction);
  }

  Value Register(unsigned number) {
    if (number == kZeroRegister) return domain_.Number(0);
    const auto found = general.find(number);
    return found != general.end() ? found->second : domain_.Special("R" + std::to_string(number));
  }

  Value Uniform(unsigned number) {
    if (number == kUniformZeroRegister) return domain_.Number(0);
    const auto found = uniform.find(number);
    return found != uniform.end() ? found->second : domain_.Special("UR" + std::to_string(number));
  }

 protected:
  static Status Unknown(const Instruction& instruction) {
    return Error{"it is not known what " + Text(instruction, 0) + " does"};
  }
  /// Writes one, or has one among what it reads, be it PT.
  static bool HasPredicates(const Instruction& instruction) {
    const RegisterSet written = UseOf(instruction).written;
    return written.predicates.any() || written.uniform_predicates.any() ||
           std::ranges::any_of(instruction.format->operands, [](const Operand& operand) {
             return operand.kind == OperandKind::kPredicate && !operand.written;
           });
  }
  static const Operand& OperandOf(const Instruction& instruction, std::size_t number) {
    return instruction.format->operands[number];
  }
  static bool IsNegated(const Instruction& instruction, std::size_t number) {
    const Operand& operand = OperandOf(instruction, number);
    return operand.negate != kNoField && instruction.Value(operand.negate) != 0;
  }
  static bool IsZero(const Instruction& instruction, std::size_t number) {
    const Operand& operand = OperandOf(instruction, number);
    return operand.kind == OperandKind::kRegister && instruction.Value(operand.value) == kZeroRegister;
  }
  Value Sum(const Value& a, const Value& b) { return domain_.Add(a, b); }

  Value Source(const Instruction& instruction, std::size_t number) {
    const Operand& operand = OperandOf(instruction, number);
    Value value = domain_.Number(0);
    if (operand.kind == OperandKind::kRegister)
      value = Register(static_cast<unsigned>(instruction.Value(operand.value)));
    else if (operand.kind == OperandKind::kUniformRegister)
      value = Uniform(static_cast<unsigned>(instruction.Value(operand.value)));
    else if (operand.kind == OperandKind::kNumber)
      value = domain_.Number(static_cast<std::uint32_t>(instruction.Value(operand.value)));
    else if (operand.kind == OperandKind::kBracketed) value = Constant(instruction);
    else value = domain_.Special("an operand of " + Text(instruction, 0));
    return IsNegated(instruction, number) ? domain_.Negate(value) : value;
  }
  Value Constant(const Instruction& instruction) {
    const auto reads = ConstantReadsOf(instruction);
    if (reads.size() != 1 || reads[0].bank != 0 || reads[0].indexed || reads[0].unknown || reads[0].bytes != 4)
      return domain_.Special("a constant of " + Text(instruction, 0));
    return domain_.Constant(reads[0].offset);
  }
  Status Load(const Instruction& instruction) {
    for (const std::uint8_t field : instruction.format->modifiers) {
      if (!instruction.format->fields[field].names[instruction.Value(field)].empty()) return Unknown(instruction);
    }
    if (OperandOf(instruction, 0).kind == OperandKind::kRegister) return Set(instruction, Constant(instruction));
    return SetUniform(instruction, Constant(instruction));
  }
  Status Set(const Instruction& instruction, const Value& value) {
    const auto number = static_cast<unsigned>(instruction.Value(OperandOf(instruction, 0).value));
    if (number != kZeroRegister) general.insert_or_assign(number, value);
    return {};
  }
  Status SetUniform(const Instruction& instruction, const Value& value) {
    const std::size_t operand = OperandOf(instruction, 0).kind == OperandKind::kUniformRegister ? 0 : 1;
    const auto number = static_cast<unsigned>(instruction.Value(OperandOf(instruction, operand).value));
    if (number != kUniformZeroRegister) uniform.insert_or_assign(number, value);
    return {};
  }

  Domain& domain_;
};

}  // namespace gridloom::machine
