#include "rewriter/machine/slice/constants.h"

#include <algorithm>

#include "rewriter/machine/registers.h"

namespace gridloom::machine {
namespace {

constexpr unsigned kRegisterBytes = 4;

/// LDC and ULDC load as many bytes as they write; another instruction reads as many as its operand has registers.
std::uint32_t BytesOf(const Instruction& instruction, const Operand& operand) {
  const std::string_view name = instruction.format->name;
  if (!name.starts_with("LDC") && !name.starts_with("ULDC")) return kRegisterBytes * RegistersOf(instruction, operand);
  const RegisterSet written = UseOf(instruction).written;
  const auto registers = static_cast<std::uint32_t>(written.general.count() + written.uniform.count());
  return kRegisterBytes * std::max(registers, 1u);
}

void ReadOffset(const Instruction& instruction, const Operand& group, ConstantRead& read) {
  for (const Operand& part : group.parts) {
    if (part.kind == OperandKind::kNumber) {
      const unsigned width = instruction.format->fields[part.value].bits();
      const unsigned shift = 32 - width;
      read.offset = static_cast<std::int32_t>(static_cast<std::uint32_t>(instruction.Value(part.value)) << shift) >>
                    static_cast<int>(shift);
      read.field = part.value;
    } else if ((part.kind == OperandKind::kRegister && instruction.Value(part.value) != kZeroRegister) ||
               (part.kind == OperandKind::kUniformRegister && instruction.Value(part.value) != kUniformZeroRegister)) {
      read.indexed = true;
    }
  }
}

}  // namespace

std::vector<ConstantRead> ConstantReadsOf(const Instruction& instruction) {
  std::vector<ConstantRead> reads;
  for (const Operand& operand : instruction.format->operands) {
    if (operand.kind != OperandKind::kBracketed || !operand.prefix.starts_with("c")) continue;
    ConstantRead read{.bytes = BytesOf(instruction, operand)};
    const bool plain = operand.prefix == "c" && operand.parts.size() == 2 && operand.parts[0].parts.size() == 1 &&
                       operand.parts[0].parts[0].kind == OperandKind::kNumber;
    if (!plain) {
      read.unknown = true;
    } else {
      read.bank = static_cast<std::uint32_t>(instruction.Value(operand.parts[0].parts[0].value));
      ReadOffset(instruction, operand.parts[1], read);
    }
    reads.push_back(read);
  }
  return reads;
}

std::string_view SpecialReadOf(const Instruction& instruction) {
  for (const Operand& operand : instruction.format->operands) {
    if (operand.kind != OperandKind::kName || operand.value == kNoField) continue;
    const std::string_view name = instruction.format->fields[operand.value].names[instruction.Value(operand.value)];
    if (name.starts_with("SR")) return name;
  }
  return {};
}

bool HasModifier(const Instruction& instruction, std::string_view name) {
  return std::ranges::any_of(instruction.format->modifiers, [&](std::uint8_t field) {
    const auto& names = instruction.format->fields[field].names;
    const std::uint64_t value = instruction.Value(field);
    return value < names.size() && names[value] == name;
  });
}

}  // namespace gridloom::machine
