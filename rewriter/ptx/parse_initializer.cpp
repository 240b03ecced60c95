// Initial values of variables (PTX ISA, 5.4.4): numbers, addresses, masks of addresses, nested lists.
#include <algorithm>
#include <bit>
#include <utility>

#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {
namespace {

bool IsByteMask(std::uint64_t mask) {
  const int shift = std::countr_zero(mask);
  return shift % 8 == 0 && mask >> shift == 0xff;
}

// Scalars in one element at a nesting level: level 0 is the whole variable, each further one drops a dimension. The
// components of a vector type are a last dimension.
std::uint64_t ScalarsAt(const Variable& variable, std::size_t level) {
  std::uint64_t scalars = level <= variable.dims.size() ? variable.vector : 1;
  for (std::size_t i = level; i < variable.dims.size(); ++i) scalars *= std::max<std::uint64_t>(1, variable.dims[i]);
  return scalars;
}

}  // namespace

// initializer := '=' ( initializer-list | field-list | initializer-value )
bool Parser::ParseInitializer(Variable& variable) {
  Advance();
  variable.has_initializer = true;
  if (!At(TokenKind::kLBrace)) return ParseInitializerElement(variable, 0);
  const bool opaque = Info(variable.type).cls == TypeClass::kOpaque;
  if (opaque && Ahead().kind == TokenKind::kIdent) return ParseFieldList(variable);
  if (!CheckSize(variable)) return false;
  variable.initializer.reserve(std::min<std::uint64_t>(ScalarsAt(variable, 0), 1024));
  if (!ParseInitializerList(variable, 1, 0)) return false;
  // `a[] = { … }` gets its size from the list.
  if (variable.dims.empty() || variable.dims.front() != 0) return true;
  std::uint64_t scalars = 0;
  for (const Initializer& value : variable.initializer) scalars = std::max(scalars, value.element + 1);
  const std::uint64_t per_element = ScalarsAt(variable, 1);
  variable.dims.front() = (scalars + per_element - 1) / per_element;
  return true;
}

// initializer-list := '{' ( item ( ',' item )* ','? )? '}'       item := initializer-list | initializer-value
// `level` counts the braces around the items, `first` is the scalar the list starts at.
bool Parser::ParseInitializerList(Variable& variable, std::size_t level, std::uint64_t first) {
  const SourceLoc loc = token_.loc;
  if (level > kMaxInitializerDepth) return FailAt(loc, "initializer nested too deeply");
  Advance();
  const std::size_t start = variable.initializer.size();
  const std::uint64_t stride = ScalarsAt(variable, level);
  std::uint64_t next = first;
  while (!At(TokenKind::kRBrace)) {
    if (At(TokenKind::kLBrace)) {
      next = first + (next - first + stride - 1) / stride * stride;
      if (!ParseInitializerList(variable, level + 1, next)) return false;
      next += stride;
    } else if (!ParseInitializerElement(variable, next++)) {
      return false;
    }
    if (!Match(TokenKind::kComma)) break;
  }
  if (!Expect(TokenKind::kRBrace, "after the initializer")) return false;
  const bool open = level == 1 && !variable.dims.empty() && variable.dims.front() == 0;
  const std::uint64_t room = ScalarsAt(variable, level - 1);
  if (!open && next - first > room) {
    return FailAt(loc, "more initial values than elements (" + std::to_string(room) + ") between '{' and '}'");
  }
  if (variable.initializer.size() == start) {
    if (level == 1) return true;
    Initializer empty;
    empty.element = first;
    empty.empty = true;
    variable.initializer.push_back(std::move(empty));
  }
  ++variable.initializer[start].group;
  ++variable.initializer.back().close;
  return true;
}

bool Parser::ParseInitializerElement(Variable& variable, std::uint64_t element) {
  Initializer value;
  value.element = element;
  if (!ParseInitializerValue(value)) return false;
  variable.initializer.push_back(std::move(value));
  return true;
}

// initializer-value := symbol-address | int '(' ( symbol-address | constant ) ')' | constant
bool Parser::ParseInitializerValue(Initializer& out) {
  if (At(TokenKind::kIdent) && !AtConstant(WarpSize::kNumber)) return ParseSymbolAddress(out);
  if (At(TokenKind::kInt) && Ahead().kind == TokenKind::kLParen) {
    const SourceLoc loc = token_.loc;
    const auto mask = IntegerFromText(token_.text);
    if (!mask || mask->bits == 0) return FailAt(loc, "expected a mask such as 0xFF before '('");
    out.mask = mask->bits;
    Advance();
    Advance();
    if (!AtConstant(WarpSize::kNumber))
      return ParseSymbolAddress(out) && Expect(TokenKind::kRParen, "after the masked address");
    out.mask = 0;
    if (!IsByteMask(mask->bits)) return FailAt(loc, "expected a mask of one byte before '('");
    Constant number;
    if (!ParseConstant(number) || !Expect(TokenKind::kRParen, "after the masked number")) return false;
    if (number.is_float) return FailAt(loc, "expected an integer behind the mask");
    const std::uint64_t byte = (number.bits & mask->bits) >> std::countr_zero(mask->bits);
    out.value = IntLiteral{.value = byte, .is_unsigned = true};
    return true;
  }
  Operand operand;
  operand.loc = token_.loc;
  if (!AtConstant(WarpSize::kNumber)) return Fail("a constant or the address of a symbol");
  if (!ParseConstantOperand(operand)) return false;
  if (operand.kind == OperandKind::kInt) {
    out.value = operand.int_literal;
  } else {
    out.value = operand.float_literal;
  }
  return true;
}

// symbol-address := ident offset? | 'generic' '(' ident offset? ')' offset?
bool Parser::ParseSymbolAddress(Initializer& out) {
  Operand symbol;
  out.generic = AtIdent("generic") && Ahead().kind == TokenKind::kLParen;
  if (out.generic) {
    Advance();
    Advance();
  }
  symbol.loc = token_.loc;
  if (!ExpectName(symbol.text, "the name of a variable or function")) return false;
  if (AtOffset() && !ParseOffset(symbol.offset)) return false;
  if (out.generic) {
    if (!Expect(TokenKind::kRParen, "after generic(")) return false;
    if (AtOffset() && !ParseOffset(symbol.offset)) return false;
  }
  out.value = std::move(symbol);
  return true;
}

// field-list := '{' ident '=' ( ident | constant ) ( ',' … )* '}'       of .samplerref, .texref and .surfref variables
bool Parser::ParseFieldList(Variable& variable) {
  Advance();
  do {
    Initializer value;
    Operand operand;
    value.element = variable.initializer.size();
    if (!ExpectName(value.field, "the name of an attribute")) return false;
    if (!Expect(TokenKind::kAssign, "after the attribute's name")) return false;
    operand.loc = token_.loc;
    if (At(TokenKind::kIdent)) {
      operand.text = token_.text;
      Advance();
    } else if (!AtConstant(WarpSize::kNumber) || !ParseConstantOperand(operand)) {
      return Fail("the attribute's value");
    }
    value.value = std::move(operand);
    variable.initializer.push_back(std::move(value));
  } while (Match(TokenKind::kComma));
  if (!Expect(TokenKind::kRBrace, "after the attributes")) return false;
  ++variable.initializer.front().group;
  ++variable.initializer.back().close;
  return true;
}

}  // namespace gridloom::ptx
