#include "rewriter/ptx/constant.h"

#include <bit>
#include <charconv>

namespace gridloom::ptx {
namespace {

struct BinaryOperator {
  TokenKind token;
  int precedence;
};
// Operators and their precedence, as in C (ISA 4.5.4).
constexpr BinaryOperator kBinaryOperators[] = {
    {TokenKind::kStar, 10},    {TokenKind::kSlash, 10},    {TokenKind::kPercent, 10},     {TokenKind::kPlus, 9},
    {TokenKind::kMinus, 9},    {TokenKind::kShiftLeft, 8}, {TokenKind::kShiftRight, 8},   {TokenKind::kLess, 7},
    {TokenKind::kGreater, 7},  {TokenKind::kLessEqual, 7}, {TokenKind::kGreaterEqual, 7}, {TokenKind::kEqual, 6},
    {TokenKind::kNotEqual, 6}, {TokenKind::kAmp, 5},       {TokenKind::kCaret, 4},        {TokenKind::kPipe, 3},
    {TokenKind::kAndAnd, 2},   {TokenKind::kOrOr, 1},
};

ConstantResult Ok(Constant value) { return {value, {}}; }
ConstantResult Bad(std::string_view error) { return {{}, error}; }
ConstantResult Truth(bool value) { return Ok(Constant::Signed(value ? 1 : 0)); }

template <typename T>
std::optional<ConstantResult> Compare(TokenKind op, T a, T b) {
  switch (op) {
    case TokenKind::kLess: return Truth(a < b);
    case TokenKind::kGreater: return Truth(a > b);
    case TokenKind::kLessEqual: return Truth(a <= b);
    case TokenKind::kGreaterEqual: return Truth(a >= b);
    case TokenKind::kEqual: return Truth(a == b);
    case TokenKind::kNotEqual: return Truth(a != b);
    default: return std::nullopt;
  }
}

ConstantResult FloatBinary(TokenKind op, double a, double b) {
  if (const auto truth = Compare(op, a, b)) return *truth;
  switch (op) {
    case TokenKind::kPlus: return Ok(Constant::Double(a + b));
    case TokenKind::kMinus: return Ok(Constant::Double(a - b));
    case TokenKind::kStar: return Ok(Constant::Double(a * b));
    case TokenKind::kSlash: return Ok(Constant::Double(a / b));
    default: return Bad("this operator needs integers");
  }
}

// Of the count, ptxas takes the lowest six bits: 1 << 65 is 2.
std::uint64_t Shift(TokenKind op, std::uint64_t a, bool is_unsigned, std::uint64_t count) {
  count &= 63;
  if (op == TokenKind::kShiftLeft) return a << count;
  return is_unsigned ? a >> count : static_cast<std::uint64_t>(static_cast<std::int64_t>(a) >> count);
}

// A remainder takes its operands as unsigned and is unsigned, whatever they are (ISA 4.5.5).
ConstantResult Divide(TokenKind op, std::uint64_t a, std::uint64_t b, bool is_unsigned) {
  if (b == 0) return Bad("division by zero in a constant expression");
  if (op == TokenKind::kPercent) return Ok(Constant::Unsigned(a % b));
  if (is_unsigned) return Ok(Constant::Unsigned(a / b));
  // The one quotient that does not fit: its wrapped value.
  if (static_cast<std::int64_t>(b) == -1) return Ok(Constant::Signed(static_cast<std::int64_t>(0 - a)));
  return Ok(Constant::Signed(static_cast<std::int64_t>(a) / static_cast<std::int64_t>(b)));
}

}  // namespace

Constant Constant::Double(double value) { return {.is_float = true, .bits = std::bit_cast<std::uint64_t>(value)}; }

double Constant::AsDouble() const {
  if (is_single) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  if (is_float) return std::bit_cast<double>(bits);
  return is_unsigned ? static_cast<double>(bits) : static_cast<double>(static_cast<std::int64_t>(bits));
}

bool Constant::IsTrue() const { return is_float ? AsDouble() != 0 : bits != 0; }

int PrecedenceOf(TokenKind op) {
  for (const BinaryOperator& entry : kBinaryOperators) {
    if (entry.token == op) return entry.precedence;
  }
  return 0;
}

std::optional<Constant> IntegerFromText(std::string_view text) {
  Constant out;
  if (text.ends_with('U')) {
    out.is_unsigned = true;
    text.remove_suffix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char marker = static_cast<char>(text[1] | 0x20);
    base = marker == 'x' ? 16 : marker == 'b' ? 2 : 8;
    text.remove_prefix(base == 8 ? 1 : 2);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.bits, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  // A literal is signed unless it does not fit (ISA 4.5.1).
  if (out.bits >> 63 != 0) out.is_unsigned = true;
  return out;
}

std::optional<Constant> FloatFromText(std::string_view text) {
  Constant out{.is_float = true};
  const char marker = text.size() > 2 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const char* last = text.data() + text.size();
  if (marker == 'f' || marker == 'd') {
    out.is_single = marker == 'f';
    const auto [end, error] = std::from_chars(text.data() + 2, last, out.bits, 16);
    return error == std::errc{} && end == last ? std::optional(out) : std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  out.bits = std::bit_cast<std::uint64_t>(value);
  out.text = text;
  return out;
}

ConstantResult ApplyUnary(TokenKind op, const Constant& a) {
  if (op == TokenKind::kPlus) return Ok(a);
  if (op == TokenKind::kBang) return Truth(!a.IsTrue());
  if (a.is_float) {
    if (op != TokenKind::kMinus) return Bad("'~' needs an integer");
    Constant out = a;
    out.bits ^= a.is_single ? std::uint64_t{1} << 31 : std::uint64_t{1} << 63;
    return Ok(out);
  }
  if (op == TokenKind::kTilde) return Ok(Constant::Unsigned(~a.bits));  // unsigned, whatever the operand is (ISA 4.5.5)
  return Ok({.is_unsigned = a.is_unsigned, .bits = 0 - a.bits});
}

ConstantResult ApplyBinary(TokenKind op, const Constant& a, const Constant& b) {
  if (op == TokenKind::kAndAnd) return Truth(a.IsTrue() && b.IsTrue());
  if (op == TokenKind::kOrOr) return Truth(a.IsTrue() || b.IsTrue());
  if (a.is_single || b.is_single) return Bad("0f literals cannot be part of a constant expression");
  if (a.is_float || b.is_float) return FloatBinary(op, a.AsDouble(), b.AsDouble());
  // The usual conversions: unsigned wins (ISA 4.5.5).
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  const auto truth = is_unsigned ? Compare(op, a.bits, b.bits)
                                 : Compare(op, static_cast<std::int64_t>(a.bits), static_cast<std::int64_t>(b.bits));
  if (truth) return *truth;
  const auto integer = [&](std::uint64_t bits) { return Ok({.is_unsigned = is_unsigned, .bits = bits}); };
  switch (op) {
    case TokenKind::kPlus: return integer(a.bits + b.bits);
    case TokenKind::kMinus: return integer(a.bits - b.bits);
    case TokenKind::kStar: return integer(a.bits * b.bits);
    case TokenKind::kSlash:
    case TokenKind::kPercent: return Divide(op, a.bits, b.bits, is_unsigned);
    case TokenKind::kShiftLeft:
    case TokenKind::kShiftRight:
      return Ok({.is_unsigned = a.is_unsigned, .bits = Shift(op, a.bits, a.is_unsigned, b.bits)});
    case TokenKind::kAmp: return integer(a.bits & b.bits);
    case TokenKind::kPipe: return integer(a.bits | b.bits);
    case TokenKind::kCaret: return integer(a.bits ^ b.bits);
    default: return Bad("not a binary operator");
  }
}

}  // namespace gridloom::ptx
