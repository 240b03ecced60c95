// Constant expressions of PTX (ISA 4.5): 64-bit integers, signed or unsigned, and double-precision numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rewriter/ptx/lexer.h"

namespace gridloom::ptx {

struct Constant {
  bool is_float = false;
  bool is_unsigned = false;    ///< integer of type .u64, else .s64
  bool is_single = false;      ///< 0f literal: `bits` are 32 bits and no arithmetic is allowed
  std::uint64_t bits = 0;      ///< integer value, or the bits of the number
  std::string_view text = {};  ///< spelling of a lone decimal floating literal

  static Constant Signed(std::int64_t value) { return {.bits = static_cast<std::uint64_t>(value)}; }
  static Constant Unsigned(std::uint64_t value) { return {.is_unsigned = true, .bits = value}; }
  static Constant Double(double value);
  double AsDouble() const;
  bool IsTrue() const;
};

/// Value of an integer token: decimal, octal, 0x, 0b, with or without U. Nothing when it does not fit 64 bits.
std::optional<Constant> IntegerFromText(std::string_view text);
/// Value of a floating token: 0f, 0d or decimal. Nothing when it does not fit a double.
std::optional<Constant> FloatFromText(std::string_view text);

/// Outcome of an operator, or why there is none ("division by zero").
struct ConstantResult {
  Constant value;
  std::string_view error;
};
ConstantResult ApplyUnary(TokenKind op, const Constant& a);
ConstantResult ApplyBinary(TokenKind op, const Constant& a, const Constant& b);

/// Binding strength of a binary operator, 0 when the token is none. Higher binds tighter.
int PrecedenceOf(TokenKind op);

}  // namespace gridloom::ptx
