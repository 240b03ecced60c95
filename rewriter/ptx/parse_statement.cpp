// Bodies: blocks, labels, directives and instructions (PTX ISA, 4.3 and chapter 9).
#include <utility>

#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {

// block := '{' statement* '}'
bool Parser::ParseBlock(Block& block) {
  block.loc = token_.loc;
  if (!Expect(TokenKind::kLBrace, "to open a block")) return false;
  ++block_depth_;
  symbols_.PushScope();
  const std::size_t first_pending = pending_.size();
  while (!At(TokenKind::kRBrace) && !At(TokenKind::kEnd) && !sink_.full()) ParseStatement(block);
  block.end_loc = token_.loc;
  CloseScope(first_pending);
  --block_depth_;
  if (sink_.full()) return false;
  if (Match(TokenKind::kRBrace)) return true;
  if (std::exchange(reported_end_, true)) return false;
  return FailAt(block.loc, "block without its closing '}'");
}

// statement := ';' | block | directive-statement | label | instruction
void Parser::ParseStatement(Block& block) {
  const char* const start = token_.begin;
  bool ok = false;
  switch (token_.kind) {
    case TokenKind::kSemicolon: Advance(); return;
    case TokenKind::kLBrace: ok = ParseNestedBlock(block); break;
    case TokenKind::kDotWord: ok = ParseDirectiveStatement(block); break;
    case TokenKind::kIdent: ok = Ahead().kind == TokenKind::kColon ? ParseLabel(block) : ParseInstruction(block); break;
    case TokenKind::kAt: ok = ParseInstruction(block); break;
    default: ok = Fail("an instruction, a label, a directive or '}'"); break;
  }
  if (!ok) RecoverAtStatement(start);
}

// Skips past the next ';' of this block, or up to its end. Braces on the way are vectors as a rule; they balance. When
// the statement broke at the start of a line, a ';' was forgotten: that line is read.
void Parser::RecoverAtStatement(const char* start) {
  const bool starts_statement = At(TokenKind::kIdent) || At(TokenKind::kDotWord) || At(TokenKind::kAt);
  if (starts_statement && token_.first_on_line && token_.begin != start) return;
  int depth = 0;
  while (!At(TokenKind::kEnd)) {
    const TokenKind kind = token_.kind;
    if (kind == TokenKind::kRBrace && depth == 0) return;
    if (kind == TokenKind::kLBrace) ++depth;
    if (kind == TokenKind::kRBrace) --depth;
    Advance();
    if (kind == TokenKind::kSemicolon) return;
  }
}

bool Parser::ParseNestedBlock(Block& block) {
  if (block_depth_ >= kMaxBlockDepth) {
    FailAt(token_.loc, "blocks nested more than " + std::to_string(kMaxBlockDepth) + " deep");
    while (!At(TokenKind::kEnd)) Advance();
    return false;
  }
  Block& inner = *std::get<std::unique_ptr<Block>>(block.statements.emplace_back(std::make_unique<Block>()));
  return ParseBlock(inner);
}

// directive-statement := variables | loc | pragma | file | label-directive | unknown-directive
bool Parser::ParseDirectiveStatement(Block& block) {
  if (StartsDeclaration(token_.text)) return ParseLocalVariables(block);
  if (AtWord(".loc")) {
    LocDirective loc;
    if (!ParseLoc(loc)) return false;
    block.statements.emplace_back(loc);
    return true;
  }
  if (AtWord(".branchtargets") || AtWord(".calltargets") || AtWord(".callprototype")) {
    return Fail("a label before " + std::string(token_.text));
  }
  TextDirective directive{.loc = token_.loc, .name = token_.text, .text = {}};
  const bool ok = AtWord(".pragma") ? ParsePragma(directive.text)
                  : AtWord(".file") ? ParseFile(directive)
                                    : ParseUnknownDirective(directive);
  if (ok) block.statements.emplace_back(directive);
  return ok;
}

// variables := declaration-head declarator ( ',' declarator )* ';'
bool Parser::ParseLocalVariables(Block& block) {
  Variable head;
  if (!ParseDeclarationHead(head, /*is_param=*/false)) return false;
  do {
    Variable variable = head;
    if (!ParseDeclarator(variable)) return false;
    const bool kept = ExpandRange(std::move(variable), [this, &block](Variable one) {
      Variable& added = block.variables.emplace_back(std::move(one));
      Declare(added);
      block.statements.emplace_back(&added);
    });
    if (!kept) return false;
  } while (Match(TokenKind::kComma));
  return Expect(TokenKind::kSemicolon, "after the declaration");
}

// loc := '.loc' int int int ( ',' 'function_name' label ( '+' int )? ( ',' 'inlined_at' int int int )? )?
bool Parser::ParseLoc(LocDirective& out) {
  out.loc = token_.loc;
  Advance();
  if (!ParseInteger32(out.file, "a file number") || !ParseInteger32(out.line, "a line number") ||
      !ParseInteger32(out.column, "a column number")) {
    return false;
  }
  if (!At(TokenKind::kComma)) return true;
  std::string rest;
  while (At(TokenKind::kComma)) {
    AppendToken(rest);
    if (!AtIdent("function_name") && !AtIdent("inlined_at")) return Fail("function_name or inlined_at in .loc");
    AppendToken(rest);
    while (At(TokenKind::kInt) || At(TokenKind::kPlus) || (At(TokenKind::kIdent) && !token_.first_on_line))
      AppendToken(rest);
  }
  out.rest = module_.strings.Intern(rest);
  return true;
}

// label := ident ':' label-directive?
bool Parser::ParseLabel(Block& block) {
  const std::string_view name = token_.text;
  const SourceLoc loc = token_.loc;
  Advance();
  Advance();
  if (AtWord(".branchtargets") || AtWord(".calltargets") || AtWord(".callprototype")) {
    return ParseLabelDirective(block, name, loc);
  }
  Label& label = block.labels.emplace_back(Label{.name = name, .loc = loc});
  block.statements.emplace_back(&label);
  symbols_.Declare(name, {.label = &label});
  return true;
}

// label-directive := ( '.branchtargets' | '.calltargets' ) target-list ';' | '.callprototype' call-prototype ';'
bool Parser::ParseLabelDirective(Block& block, std::string_view name, SourceLoc loc) {
  auto directive = std::make_unique<LabelDirective>();
  directive->name = name;
  directive->loc = loc;
  directive->kind = AtWord(".branchtargets") ? LabelDirective::Kind::kBranchTargets
                    : AtWord(".calltargets") ? LabelDirective::Kind::kCallTargets
                                             : LabelDirective::Kind::kCallPrototype;
  Advance();
  const bool prototype = directive->kind == LabelDirective::Kind::kCallPrototype;
  if (!(prototype ? ParseCallPrototype(*directive) : ParseTargetList(*directive))) return false;
  if (!Expect(TokenKind::kSemicolon, "after the directive")) return false;
  symbols_.Declare(name, {.directive = directive.get()});
  for (Operand& target : directive->targets) {
    ResolveName(target, /*label_expected=*/directive->kind == LabelDirective::Kind::kBranchTargets);
  }
  block.statements.emplace_back(std::move(directive));
  return true;
}

// target-list := target ( ',' target )*       target := ident ( '<' int '>' )?, where L<2> is short for L0, L1
bool Parser::ParseTargetList(LabelDirective& out) {
  do {
    Operand target;
    target.loc = token_.loc;
    if (!ExpectName(target.text, "the name of a target")) return false;
    if (!Match(TokenKind::kLess)) {
      out.targets.push_back(std::move(target));
      continue;
    }
    const auto count = At(TokenKind::kInt) ? IntegerFromText(token_.text) : std::nullopt;
    if (!count) return Fail("the number of targets");
    if (!CountExpanded(count->bits, token_.loc)) return false;
    Advance();
    for (std::uint64_t i = 0; i < count->bits; ++i) {
      Operand& one = out.targets.emplace_back(target);
      one.text = module_.strings.Intern(std::string(target.text) + std::to_string(i));
    }
    if (!Expect(TokenKind::kGreater, "after the number of targets")) return false;
  } while (Match(TokenKind::kComma));
  return true;
}

// call-prototype := ( '(' parameters ')' )? name ( '(' parameters ')' )? ( '.noreturn' | word int? )*
bool Parser::ParseCallPrototype(LabelDirective& out) {
  if (At(TokenKind::kLParen) && !ParseParameters(out.returns, nullptr)) return false;
  std::string_view name;
  if (!ExpectName(name, "'_' in .callprototype")) return false;
  if (At(TokenKind::kLParen) && !ParseParameters(out.params, nullptr)) return false;
  std::string rest;
  while (At(TokenKind::kDotWord) || At(TokenKind::kInt)) {
    if (MatchWord(".noreturn")) {
      out.noreturn = true;
    } else {
      AppendToken(rest);
    }
  }
  out.rest = module_.strings.Intern(rest);
  return true;
}

// instruction := guard? opcode operands ';'
bool Parser::ParseInstruction(Block& block) {
  Instruction instruction;
  instruction.loc = token_.loc;
  indexed_.clear();
  if (At(TokenKind::kAt) && !ParseGuard(instruction)) return false;
  if (!ParseOpcode(instruction) || !ParseOperands(instruction)) return false;
  if (!Match(TokenKind::kSemicolon)) return Fail("',' or ';' after the operands of " + instruction.FullName());
  if (!indexed_.empty()) {
    const bool is_address = instruction.opcode == Opcode::kMov || instruction.opcode == Opcode::kCvta;
    WriteIndexedAddresses(block, is_address ? BytesOf(instruction.type()) : 8, instruction.loc);
  }
  const bool branch = instruction.info().cls == OpClass::kBranch;
  for (Operand& operand : instruction.operands) ResolveOperand(operand, branch);
  if (instruction.guard) ResolveGuard(*instruction.guard);
  block.statements.emplace_back(std::move(instruction));
  return true;
}

// guard := '@' '!'? ident
bool Parser::ParseGuard(Instruction& instruction) {
  Advance();
  Guard guard;
  guard.negated = Match(TokenKind::kBang);
  guard.loc = token_.loc;
  if (!ExpectName(guard.text, "a predicate register after '@'")) return false;
  instruction.guard = guard;
  return true;
}

// opcode := ident modifier*
bool Parser::ParseOpcode(Instruction& instruction) {
  if (!ExpectName(instruction.name, "an instruction")) return false;
  if (const auto opcode = OpcodeFromText(instruction.name)) instruction.opcode = *opcode;
  instruction.modifiers.reserve(4);
  while (At(TokenKind::kDotWord)) {
    if (!ParseModifier(instruction)) return false;
  }
  return true;
}

// modifier := dot-word | '.const' '[' int ']'       the latter is a constant bank of PTX 1.x
bool Parser::ParseModifier(Instruction& instruction) {
  Modifier modifier{.mod = Mod::kOther, .text = token_.text.substr(1)};
  const char* end = token_.end;
  Advance();
  if (TypeFromText(modifier.text)) {
    modifier.mod = Mod::kType;
  } else if (SpaceFromText(modifier.text)) {
    modifier.mod = Mod::kSpace;
  } else {
    modifier.mod = ModFromText(modifier.text);
  }
  if (modifier.text == "const" && At(TokenKind::kLBracket) && token_.begin == end) {
    Advance();
    std::uint64_t bank = 0;
    if (!ParseInteger(bank, "a constant bank")) return false;
    if (!Expect(TokenKind::kRBracket, "after the constant bank")) return false;
    modifier.text = module_.strings.Intern("const[" + std::to_string(bank) + ']');
  }
  instruction.modifiers.push_back(modifier);
  return true;
}

}  // namespace gridloom::ptx
