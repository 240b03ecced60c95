// Constant expressions (PTX ISA, 4.5), evaluated while they are read.
#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {

bool Parser::ParseConstant(Constant& out) { return ParseConditional(out, 0); }

// conditional := binary ( '?' conditional ':' conditional )?
bool Parser::ParseConditional(Constant& out, int depth) {
  if (!ParseBinary(out, 1, depth)) return false;
  if (!Match(TokenKind::kQuestion)) return true;
  Constant yes, no;
  if (depth >= kMaxExpressionDepth) return FailAt(token_.loc, "constant expression nested too deeply");
  if (!ParseConditional(yes, depth + 1) || !Expect(TokenKind::kColon, "in '? :'") || !ParseConditional(no, depth + 1)) {
    return false;
  }
  out = out.IsTrue() ? yes : no;
  return true;
}

// binary := unary ( operator binary )*       operators as in C, left-associative
bool Parser::ParseBinary(Constant& out, int min_precedence, int depth) {
  if (!ParseUnary(out, depth)) return false;
  for (;;) {
    const TokenKind op = token_.kind;
    const SourceLoc loc = token_.loc;
    const int precedence = PrecedenceOf(op);
    if (precedence == 0 || precedence < min_precedence) return true;
    Advance();
    Constant right;
    if (!ParseBinary(right, precedence + 1, depth)) return false;
    const ConstantResult result = ApplyBinary(op, out, right);
    if (!result.error.empty()) return FailAt(loc, std::string(result.error));
    out = result.value;
  }
}

// unary := ( '+' | '-' | '!' | '~' ) unary | primary
bool Parser::ParseUnary(Constant& out, int depth) {
  const Token op = token_;
  if (op.kind != TokenKind::kPlus && op.kind != TokenKind::kMinus && op.kind != TokenKind::kBang &&
      op.kind != TokenKind::kTilde) {
    return ParsePrimary(out, depth);
  }
  if (depth >= kMaxExpressionDepth) return FailAt(op.loc, "constant expression nested too deeply");
  Advance();
  Constant operand;
  if (!ParseUnary(operand, depth + 1)) return false;
  const ConstantResult result = ApplyUnary(op.kind, operand);
  if (!result.error.empty()) return FailAt(op.loc, std::string(result.error));
  out = result.value;
  return true;
}

// primary := integer | float | 'WARP_SZ' | parenthesized
bool Parser::ParsePrimary(Constant& out, int depth) {
  std::optional<Constant> value;
  if (At(TokenKind::kInt)) {
    value = IntegerFromText(token_.text);
    if (!value)
      return FailAt(token_.loc, "integer '" + std::string(token_.text) + "' is malformed or does not fit 64 bits");
  } else if (At(TokenKind::kFloat)) {
    value = FloatFromText(token_.text);
    if (!value) return FailAt(token_.loc, "number '" + std::string(token_.text) + "' is malformed or out of range");
  } else if (AtIdent("WARP_SZ")) {
    value = Constant::Signed(32);
  } else if (At(TokenKind::kLParen)) {
    return ParseParenthesized(out, depth);
  } else {
    return Fail("a constant");
  }
  out = *value;
  Advance();
  return true;
}

// parenthesized := '(' ( '.s64' | '.u64' ) ')' unary | '(' conditional ')'
bool Parser::ParseParenthesized(Constant& out, int depth) {
  if (depth >= kMaxExpressionDepth) return FailAt(token_.loc, "constant expression nested too deeply");
  Advance();
  if (AtWord(".s64") || AtWord(".u64")) {
    const bool is_unsigned = AtWord(".u64");
    Advance();
    if (!Expect(TokenKind::kRParen, "after the type of a cast") || !ParseUnary(out, depth + 1)) return false;
    if (out.is_float) out = Constant::Signed(static_cast<std::int64_t>(out.AsDouble()));
    out.is_unsigned = is_unsigned;
    return true;
  }
  if (!ParseConditional(out, depth + 1) || !Expect(TokenKind::kRParen, "to close the expression")) return false;
  out.text = {};
  return true;
}

// A constant where a count, a size or a number of a directive is expected.
bool Parser::ParseInteger(std::uint64_t& out, std::string_view what) {
  const SourceLoc loc = token_.loc;
  if (!AtConstant(WarpSize::kNumber)) return Fail(what);
  Constant value;
  if (!ParseConstant(value)) return false;
  if (value.is_float || (!value.is_unsigned && static_cast<std::int64_t>(value.bits) < 0)) {
    return FailAt(loc, "expected " + std::string(what) + ", found a negative or fractional number");
  }
  out = value.bits;
  return true;
}

bool Parser::ParseInteger32(std::uint32_t& out, std::string_view what) {
  const SourceLoc loc = token_.loc;
  std::uint64_t value = 0;
  if (!ParseInteger(value, what)) return false;
  if (value > UINT32_MAX)
    return FailAt(loc, "expected " + std::string(what) + ", found " + std::to_string(value) + ", which is too large");
  out = static_cast<std::uint32_t>(value);
  return true;
}

}  // namespace gridloom::ptx
