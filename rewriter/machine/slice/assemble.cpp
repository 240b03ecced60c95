#include "rewriter/machine/slice/assemble.h"

#include <algorithm>
#include <string>

#include "rewriter/machine/table.h"

namespace gridloom::machine {
namespace {

constexpr unsigned kFormAt = 9;

std::uint64_t LowBitsOf(std::int64_t number, unsigned bits) {
  return static_cast<std::uint64_t>(number) & (bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1);
}

/// Sets fields of an instruction of one format; false when the format has no place for a value.
class Filler {
 public:
  explicit Filler(const Format& format) : instruction_{.format = &format} {
    for (const Field& field : format.fields) instruction_.values.push_back(field.only.value_or(EmptyName(field)));
    for (const Operand& operand : format.operands) SetDefault(operand);
  }

  bool SetModifier(std::string_view name) {
    return std::ranges::any_of(instruction_.format->modifiers,
                               [&](std::uint8_t field) { return SetName(field, name); });
  }
  bool Set(const Operand& operand, const Argument& argument) {
    if (argument.kind == Argument::Kind::kDefault) return true;
    if (argument.kind == Argument::Kind::kConstant) {
      return operand.kind == OperandKind::kBracketed && operand.prefix == "c" && operand.parts.size() == 2 &&
             SetNumber(operand.parts[1].parts.back(), argument.number);
    }
    if (argument.kind == Argument::Kind::kAddress) return SetAddress(operand, argument);
    if (argument.kind == Argument::Kind::kName)
      return operand.value != kNoField && SetName(operand.value, argument.name);
    if (argument.negated) {
      if (operand.negate == kNoField) return false;
      instruction_.values[operand.negate] = 1;
    }
    return SetNumber(operand, argument.number);
  }
  const Instruction& instruction() const { return instruction_; }

 private:
  static std::uint64_t EmptyName(const Field& field) {
    const auto empty = std::ranges::find(field.names, std::string_view());
    return empty == field.names.end() ? 0 : static_cast<std::uint64_t>(empty - field.names.begin());
  }
  void SetDefault(const Operand& operand) {
    for (const Operand& part : operand.parts) SetDefault(part);
    if (operand.value == kNoField || instruction_.format->fields[operand.value].only) return;
    std::uint64_t& value = instruction_.values[operand.value];
    if (operand.kind == OperandKind::kRegister) value = kZeroRegister;
    if (operand.kind == OperandKind::kUniformRegister) value = kUniformZeroRegister;
    if (operand.kind == OperandKind::kPredicate || operand.kind == OperandKind::kUniformPredicate) value = kTrue;
  }
  /// The register of `desc[U][R.64]` or `[R]`; offsets stay 0.
  bool SetAddress(const Operand& operand, const Argument& argument) {
    if (operand.kind == OperandKind::kRegister) {
      for (const Suffix& suffix : operand.suffixes) {
        if (!SetName(suffix.field, ".64")) return false;
      }
      return SetNumber(operand, argument.number);
    }
    if (operand.kind == OperandKind::kUniformRegister) return SetNumber(operand, argument.uniform);
    return std::ranges::all_of(operand.parts, [&](const Operand& part) { return SetAddress(part, argument); });
  }
  bool SetNumber(const Operand& operand, std::int64_t number) {
    if (operand.value == kNoField) return false;
    const Field& field = instruction_.format->fields[operand.value];
    const std::uint64_t value = LowBitsOf(number, field.bits());
    if (!field.Allows(value)) return false;
    instruction_.values[operand.value] = value;
    return true;
  }
  bool SetName(std::uint8_t field, std::string_view name) {
    const auto& names = instruction_.format->fields[field].names;
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) return false;
    instruction_.values[field] = static_cast<std::uint64_t>(found - names.begin());
    return true;
  }

  Instruction instruction_;
};

}  // namespace

Result<Instruction> Assemble(unsigned sm, std::string_view name, unsigned form, const std::vector<Argument>& arguments,
                             std::initializer_list<std::string_view> modifiers) {
  for (const Format& format : AllFormats()) {
    if (format.name != name || format.opcode >> kFormAt != form || sm < format.first_sm || format.last_sm < sm)
      continue;
    if (arguments.size() > format.operands.size()) continue;
    Filler filler(format);
    bool fits = std::ranges::all_of(modifiers, [&](std::string_view modifier) { return filler.SetModifier(modifier); });
    for (std::size_t number = 0; fits && number < arguments.size(); ++number)
      fits = filler.Set(format.operands[number], arguments[number]);
    if (!fits || !Verify(filler.instruction()).ok()) continue;
    if (const auto read = Decode(Encode(filler.instruction()), sm); read && read->format == &format)
      return filler.instruction();
  }
  return Error{"the table has no " + std::string(name) + " of form " + std::to_string(form) + " for sm_" +
               std::to_string(sm) + " that fits"};
}

}  // namespace gridloom::machine
