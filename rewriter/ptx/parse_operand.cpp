// Operands (PTX ISA, chapter 6).
#include <utility>

#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {
namespace {

constexpr int kMaxOperandDepth = 8;

void SetLiteral(const Constant& value, Operand& out) {
  if (!value.is_float) {
    out.kind = OperandKind::kInt;
    const bool negative = !value.is_unsigned && static_cast<std::int64_t>(value.bits) < 0;
    out.int_literal = {.value = value.bits, .negative = negative, .is_unsigned = value.is_unsigned};
    return;
  }
  out.kind = OperandKind::kFloat;
  const bool negative = value.bits >> (value.is_single ? 31 : 63) != 0;
  out.float_literal = {.bits = value.bits,
                       .width = static_cast<std::uint8_t>(value.is_single ? 32 : 64),
                       .negative = negative,
                       .text = value.text};
}

/// Whether ptxas 13.0 takes indexed variables in instructions of the opcode.
bool TakesIndexedVariables(Opcode opcode) {
  return opcode == Opcode::kLd || opcode == Opcode::kLdu || opcode == Opcode::kSt || opcode == Opcode::kMov ||
         opcode == Opcode::kCvta;
}

}  // namespace

// operands := ( operand ( ',' operand )* )?
bool Parser::ParseOperands(Instruction& instruction) {
  // Parenthesised lists are parameters of a call; elsewhere a parenthesis starts a constant expression.
  const OpClass cls = instruction.info().cls;
  const OperandContext context{.lists = cls == OpClass::kCall || cls == OpClass::kUnknown,
                               .subscripts_are_addresses = cls == OpClass::kLoad || cls == OpClass::kStore ||
                                                           cls == OpClass::kAtomic || cls == OpClass::kMem,
                               .subscripts_allow_registers = TakesIndexedVariables(instruction.opcode)};
  if (At(TokenKind::kSemicolon)) return true;
  std::vector<Operand> operands;
  operands.reserve(4);
  do {
    if (!ParseOperand(operands.emplace_back(), context)) return false;
  } while (Match(TokenKind::kComma));
  instruction.operands.reserve(operands.size());
  for (Operand& operand : operands) instruction.operands.push_back(std::move(operand));
  return true;
}

// operand := simple-operand ( '|' simple-operand )?
bool Parser::ParseOperand(Operand& out, OperandContext context) {
  if (!ParseSimpleOperand(out, context)) return false;
  if (!At(TokenKind::kPipe)) return true;
  Advance();
  Operand pair;
  pair.kind = OperandKind::kPair;
  pair.loc = out.loc;
  pair.elements.reserve(2);
  pair.elements.push_back(std::move(out));
  if (!ParseSimpleOperand(pair.elements.emplace_back(), context)) return false;
  out = std::move(pair);
  return true;
}

// simple-operand := address | vector | list | constant | string | ( '!' | '-' )? named-operand
bool Parser::ParseSimpleOperand(Operand& out, OperandContext context) {
  out.loc = token_.loc;
  if (++context.depth > kMaxOperandDepth) return FailAt(token_.loc, "operand nested too deeply");
  switch (token_.kind) {
    case TokenKind::kIdent:
      if (AtConstant()) return ParseConstantOperand(out);
      return ParseNamedOperand(out, context);
    case TokenKind::kLBracket: return ParseAddress(out, context);
    case TokenKind::kLBrace:
      out.kind = OperandKind::kVector;
      Advance();
      return ParseOperandList(out.elements, TokenKind::kRBrace, context);
    case TokenKind::kLParen:
      if (!context.lists) return ParseConstantOperand(out);
      out.kind = OperandKind::kList;
      Advance();
      return ParseOperandList(out.elements, TokenKind::kRParen, context);
    case TokenKind::kBang:
    case TokenKind::kMinus: {
      const Token& next = Ahead();
      if (next.kind != TokenKind::kIdent || next.text == "WARP_SZ") return ParseConstantOperand(out);
      (At(TokenKind::kBang) ? out.negated : out.minus) = true;
      Advance();
      return ParseNamedOperand(out, context);
    }
    case TokenKind::kString:
      out.kind = OperandKind::kString;
      out.text = token_.text;
      Advance();
      return true;
    default:
      if (AtConstant()) return ParseConstantOperand(out);
      return Fail("an operand");
  }
}

// A constant expression can start here. WARP_SZ alone is a name where operands can be; in an expression it is 32.
bool Parser::AtConstant(WarpSize alone) {
  switch (token_.kind) {
    case TokenKind::kInt:
    case TokenKind::kFloat:
    case TokenKind::kLParen:
    case TokenKind::kPlus:
    case TokenKind::kMinus:
    case TokenKind::kTilde:
    case TokenKind::kBang: return true;
    case TokenKind::kIdent:
      return token_.text == "WARP_SZ" && (alone == WarpSize::kNumber || PrecedenceOf(Ahead().kind) != 0);
    default: return false;
  }
}

bool Parser::ParseConstantOperand(Operand& out) {
  Constant value;
  if (!ParseConstant(value)) return false;
  SetLiteral(value, out);
  return true;
}

// named-operand := name offset?
bool Parser::ParseNamedOperand(Operand& out, OperandContext context) {
  if (!ParseName(out, context)) return false;
  return !AtOffset() || ParseOffset(out.offset);
}

// name := '_' | ident selector? subscript?
bool Parser::ParseName(Operand& out, OperandContext context) {
  out.text = token_.text;
  out.kind = out.text == "_" ? OperandKind::kSink : OperandKind::kName;
  Advance();
  if (At(TokenKind::kDotWord) && !ParseSelector(out)) return false;
  return !At(TokenKind::kLBracket) || ParseSubscript(out, context);
}

// offset := ( '+' | '-' ) constant       added to what the operand already has
bool Parser::ParseOffset(std::int64_t& out) {
  Match(TokenKind::kPlus);  // a '-' belongs to the constant
  const SourceLoc loc = token_.loc;
  Constant offset;
  if (!ParseConstant(offset)) return false;
  if (offset.is_float) return FailAt(loc, "expected an integer offset");
  out = static_cast<std::int64_t>(static_cast<std::uint64_t>(out) + offset.bits);
  return true;
}

// selector := '.x' … (component of a vector) | '.b0' '.h1' '.b3210' … (part of a video operand)
bool Parser::ParseSelector(Operand& out) {
  std::string_view selector = token_.text.substr(1);
  if (selector.size() == 1 && std::string_view("xyzwrgba").find(selector[0]) != std::string_view::npos) {
    out.element = selector[0];
  } else if (selector.size() > 1 && (selector[0] == 'b' || selector[0] == 'h')) {
    out.selector = selector;
  } else {
    return Fail("a component (.x .y .z .w .r .g .b .a) or a selector (.b0 .h1 …)");
  }
  Advance();
  return true;
}

// subscript := '[' ( constant | register-subscript ) ']'       element of an array (ISA 6.4.2): the same as array +
//                                                              index * element size
// In a mov it is that address, in a load or store the memory there.
bool Parser::ParseSubscript(Operand& out, OperandContext context) {
  Advance();
  const Symbol symbol = symbols_.Find(out.text);
  const bool by_register = At(TokenKind::kIdent) && !AtConstant(WarpSize::kNumber);
  std::uint64_t index = 0;
  if (!by_register && !ParseInteger(index, "an array index")) return false;
  if (symbol.variable == nullptr) return FailAt(out.loc, "'" + std::string(out.text) + "' is not a declared array");
  if (by_register) {
    if (!context.subscripts_allow_registers)
      return FailAt(token_.loc, "a register as array index is for ld, ldu, st, mov and cvta");
    if (!ParseRegisterSubscript(out, *symbol.variable)) return false;
  }
  out.offset = static_cast<std::int64_t>(index * symbol.variable->element_bytes());
  if (context.subscripts_are_addresses) {
    auto address = std::make_unique<AddressOperand>();
    address->offset = std::exchange(out.offset, 0);
    address->base.push_back(std::move(out));
    out = Operand();
    out.kind = OperandKind::kAddress;
    out.loc = address->base.front().loc;
    out.address = std::move(address);
  }
  return Expect(TokenKind::kRBracket, "after the array index");
}

// operand-list := ( operand ( ',' operand )* )? CLOSE
bool Parser::ParseOperandList(std::vector<Operand>& out, TokenKind close, OperandContext context) {
  if (Match(close)) return true;
  do {
    if (!ParseOperand(out.emplace_back(), context)) return false;
  } while (Match(TokenKind::kComma));
  return Expect(close, "after the list of operands");
}

// address := '[' address-base ( ',' operand )* ']' '.unified'?
bool Parser::ParseAddress(Operand& out, OperandContext context) {
  out.kind = OperandKind::kAddress;
  out.address = std::make_unique<AddressOperand>();
  Advance();
  if (!ParseAddressBase(*out.address)) return false;
  while (Match(TokenKind::kComma)) {
    if (!ParseOperand(out.address->elements.emplace_back(), context)) return false;
  }
  if (!Expect(TokenKind::kRBracket, "after the address")) return false;
  if (At(TokenKind::kDotWord)) {
    out.selector = token_.text.substr(1);
    Advance();
  }
  return true;
}

// address-base := constant | name offset?
bool Parser::ParseAddressBase(AddressOperand& out) {
  const SourceLoc loc = token_.loc;
  if (AtConstant()) {
    Constant value;
    if (!ParseConstant(value)) return false;
    if (value.is_float) return FailAt(loc, "expected an integer address");
    out.offset = static_cast<std::int64_t>(value.bits);
    return true;
  }
  if (!At(TokenKind::kIdent)) return Fail("a register, a symbol or a constant after '['");
  out.base.reserve(1);
  Operand& base = out.base.emplace_back();
  base.loc = loc;
  if (!ParseName(base, {})) return false;
  out.offset = std::exchange(base.offset, 0);
  if (!AtOffset()) return true;
  if (!ParseOffset(out.offset)) return false;
  out.printed_offset = out.offset == 0;
  return true;
}

}  // namespace gridloom::ptx
