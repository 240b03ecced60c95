#include "rewriter/machine/print.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace gridloom::machine {
namespace {

std::string HexNumber(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::int64_t SignExtend(std::uint64_t value, unsigned bits) {
  const unsigned shift = 64 - bits;
  return static_cast<std::int64_t>(value << shift) >> shift;
}

std::string SignedHex(std::int64_t number) {
  return number < 0 ? "-" + HexNumber(0 - static_cast<std::uint64_t>(number))
                    : HexNumber(static_cast<std::uint64_t>(number));
}

constexpr double kLargeFloat = 1e9;

// nvdisasm writes twenty significant digits, of large numbers one more, and infinities and NaNs with their sign.
std::string FloatText(double value) {
  const std::string sign = std::signbit(value) ? "-" : "+";
  if (std::isnan(value)) return sign + "QNAN ";
  if (std::isinf(value)) return sign + "INF ";
  char text[64];
  std::snprintf(text, sizeof text, std::fabs(value) >= kLargeFloat ? "%.20e" : "%.20g", value);
  return text;
}

float FromBfloat(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16)); }

double FromHalf(std::uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = static_cast<double>(bits & 1023);
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? std::copysign(value, -1.0) : value;
}

class Printer {
 public:
  Printer(const Instruction& instruction, std::uint64_t address)
      : instruction_(instruction), format_(*instruction.format), address_(address) {}

  std::string Run();

 private:
  std::string Guard() const;
  std::string OperandText(const Operand& operand) const;
  std::string Plain(const Operand& operand) const;
  std::string Numbered(std::string_view file, const Operand& operand, unsigned none, std::string_view none_name) const;
  std::string NumberText(const Operand& operand) const;
  std::string GroupText(const Operand& group) const;
  std::string Bracketed(const Operand& operand) const;
  std::string SuffixText(const Operand& operand) const;
  bool IsDefault(const Operand& operand) const;
  std::string_view Name(std::uint8_t field) const { return format_.fields[field].names[instruction_.Value(field)]; }
  bool IsSet(std::uint8_t field) const { return field != kNoField && instruction_.Value(field) != 0; }

  const Instruction& instruction_;
  const Format& format_;
  std::uint64_t address_;
};

std::string Printer::Guard() const {
  if (instruction_.guard == kTrue && !instruction_.guard_negated) return {};
  std::string text = instruction_.guard_negated ? "@!" : "@";
  text += format_.uniform_guard ? "UP" : "P";
  return text + (instruction_.guard == kTrue ? "T" : std::to_string(instruction_.guard)) + " ";
}

std::string Printer::Numbered(std::string_view file, const Operand& operand, unsigned none,
                              std::string_view none_name) const {
  const std::uint64_t number = instruction_.Value(operand.value);
  return std::string(file) + (number == none ? std::string(none_name) : std::to_string(number));
}

std::string Printer::NumberText(const Operand& operand) const {
  const std::uint64_t value = instruction_.Value(operand.value);
  const auto half = [&](unsigned which) { return value >> (16 * which) & 0xFFFF; };
  switch (operand.style) {
    case Style::kHex: return HexNumber(value);
    case Style::kSigned: return SignedHex(SignExtend(value, format_.fields[operand.value].bits()) * operand.scale);
    case Style::kDecimal: return std::to_string(value);
    case Style::kFloat: return FloatText(std::bit_cast<float>(static_cast<std::uint32_t>(value)));
    case Style::kDouble: return FloatText(std::bit_cast<double>(value << 32));
    case Style::kHalves: return FloatText(FromHalf(half(1))) + ", " + FloatText(FromHalf(half(0)));
    case Style::kBfloats: return FloatText(FromBfloat(half(1))) + ", " + FloatText(FromBfloat(half(0)));
  }
  return {};
}

std::string Printer::Plain(const Operand& operand) const {
  switch (operand.kind) {
    case OperandKind::kRegister: return Numbered("R", operand, kZeroRegister, "Z");
    case OperandKind::kUniformRegister: return Numbered("UR", operand, kUniformZeroRegister, "Z");
    case OperandKind::kPredicate: return Numbered("P", operand, kTrue, "T");
    case OperandKind::kUniformPredicate: return Numbered("UP", operand, kTrue, "T");
    case OperandKind::kConvergence: return Numbered("B", operand, ~0u, "");
    case OperandKind::kScoreboard: return Numbered("SB", operand, ~0u, "");
    case OperandKind::kNumber: return NumberText(operand);
    case OperandKind::kTarget: {
      const Field& field = format_.fields[operand.value];
      const std::int64_t distance = SignExtend(instruction_.Value(operand.value), field.bits()) * operand.scale;
      // Before address 0 when the code is not where it belongs.
      return SignedHex(static_cast<std::int64_t>(address_ + kWordBytes) + distance);
    }
    case OperandKind::kName: return std::string(Name(operand.value));
    case OperandKind::kSet: {
      std::string text;
      for (unsigned bit = 64; bit-- > 0;) {
        if ((instruction_.Value(operand.value) >> bit & 1) != 0)
          text += (text.empty() ? "{" : ",") + std::to_string(bit);
      }
      return text + "}";
    }
    case OperandKind::kWord: return std::string(operand.prefix);
    case OperandKind::kBracketed: return Bracketed(operand);
  }
  return {};
}

std::string Printer::SuffixText(const Operand& operand) const {
  std::string text;
  if (operand.reuse != kNoField && (instruction_.control.reuse >> operand.reuse & 1) != 0) text += ".reuse";
  for (const Suffix& suffix : operand.suffixes) text += Name(suffix.field);
  return text;
}

// Parts that say nothing are left out, but for the first when all do; a uniform register is always written.
std::string Printer::GroupText(const Operand& group) const {
  std::string text;
  for (const Operand& part : group.parts) {
    if (group.parts.size() > 1 && part.kind != OperandKind::kUniformRegister && IsDefault(part)) continue;
    if (!text.empty()) text += "+";
    text += OperandText(part);
  }
  if (text.empty()) text = OperandText(group.parts.front());
  return "[" + text + "]";
}

std::string Printer::Bracketed(const Operand& operand) const {
  std::string text(operand.prefix);
  for (const Operand& group : operand.parts) text += GroupText(group);
  return text;
}

std::string Printer::OperandText(const Operand& operand) const {
  std::string text = Plain(operand);
  if (IsSet(operand.absolute)) text = "|" + text + "|";
  text += SuffixText(operand);
  if (!IsSet(operand.negate)) return text;
  const bool predicate = operand.kind == OperandKind::kPredicate || operand.kind == OperandKind::kUniformPredicate;
  return (predicate ? "!" : operand.always_inverted ? "~" : "-") + text;
}

bool Printer::IsDefault(const Operand& operand) const {
  if (operand.value == kNoField) return false;
  const std::uint64_t value = instruction_.Value(operand.value);
  switch (operand.kind) {
    case OperandKind::kRegister: return value == kZeroRegister;
    case OperandKind::kUniformRegister: return value == kUniformZeroRegister;
    case OperandKind::kPredicate:
    case OperandKind::kUniformPredicate:
      return value == kTrue && (operand.written || IsSet(operand.negate) != operand.default_true);
    default: return value == 0;
  }
}

std::string Printer::Run() {
  std::string text = Guard() + std::string(format_.name);
  for (const std::uint8_t field : format_.modifiers) text += Name(field);
  bool first = true;
  for (const Operand& operand : format_.operands) {
    if (operand.silent || (operand.optional && IsDefault(operand))) continue;
    text += first || operand.glued ? " " : ", ";
    text += OperandText(operand);
    first = false;
  }
  return text;
}

}  // namespace

std::string Text(const Instruction& instruction, std::uint64_t address) { return Printer(instruction, address).Run(); }

std::string Hex(const Word& word) {
  char text[40];
  std::snprintf(text, sizeof text, "0x%016llx%016llx", static_cast<unsigned long long>(word.high),
                static_cast<unsigned long long>(word.low));
  return text;
}

std::string Text(const Control& control) {
  std::string text = "B";
  for (unsigned number = 0; number < 6; ++number)
    text += (control.wait >> number & 1) != 0 ? static_cast<char>('0' + number) : '-';
  const auto barrier = [](std::uint8_t number) {
    return number == kNoBarrier ? std::string("-") : std::to_string(number);
  };
  text += " W" + barrier(control.write_barrier) + " R" + barrier(control.read_barrier);
  text += control.yield ? " -" : " Y";
  text += control.stall < 10 ? " S0" : " S";
  return text + std::to_string(control.stall);
}

}  // namespace gridloom::machine
