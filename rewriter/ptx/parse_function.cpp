// Kernels and functions (PTX ISA, 7.1, 11.2 to 11.4).
#include <utility>

#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {

// function := ( '.entry' | '.func' ) attributes? ( '(' parameters ')' )? name ( '(' parameters ')' )?
// function-directive*
//             ( ';' | body )
bool Parser::ParseFunction(Linkage linkage) {
  Function& function = module_.functions.emplace_back();
  function.linkage = linkage;
  function.is_entry = AtWord(".entry");
  Advance();
  symbols_.PushScope();  // of the parameters
  const std::size_t first_pending = pending_.size();
  const bool ok = [&] {
    if (AtWord(".attribute") && !ParseAttributes(function.attributes)) return false;
    if (At(TokenKind::kLParen) && !ParseParameters(function.returns, nullptr)) return false;
    function.loc = token_.loc;
    if (!ExpectName(function.name, "the name of the function")) return false;
    if (At(TokenKind::kLParen) && !ParseParameters(function.params, &function.variadic_param)) return false;
    return ParseFunctionDirectives(function);
  }();
  CloseScope(first_pending);
  if (!ok) {
    module_.functions.pop_back();
    return false;
  }
  module_.items.emplace_back(&function);
  const bool has_body = At(TokenKind::kLBrace);
  const Symbol before = symbols_.FindExact(function.name);
  // A prototype that follows the definition does not hide it.
  if (has_body || before.function == nullptr || before.function->body == nullptr) {
    symbols_.Declare(function.name, {.function = &function});
  }
  if (has_body) return lazy_ != nullptr && function.is_entry ? LeaveBody(function) : ParseBody(function);
  return Expect(TokenKind::kSemicolon, "or a body after the function's header");
}

// parameters := '(' ( parameter ( ',' parameter )* ( ',' '...' )? )? ')'
bool Parser::ParseParameters(std::deque<Variable>& out, bool* variadic) {
  Advance();
  if (Match(TokenKind::kRParen)) return true;
  do {
    if (variadic != nullptr && Match(TokenKind::kEllipsis)) {
      *variadic = true;
      break;
    }
    if (!ParseParameter(out)) return false;
  } while (Match(TokenKind::kComma));
  if (variadic != nullptr && !out.empty() && !out.back().dims.empty() && out.back().dims.front() == 0) *variadic = true;
  return Expect(TokenKind::kRParen, "after the parameters");
}

// parameter := declaration-head declarator       `_` as a name stands for none
bool Parser::ParseParameter(std::deque<Variable>& out) {
  Variable variable;
  if (!ParseDeclarationHead(variable, /*is_param=*/true) || !ParseDeclarator(variable)) return false;
  return ExpandRange(std::move(variable), [&out](Variable one) { out.push_back(std::move(one)); });
}

bool Parser::ParseFunctionDirectives(Function& function) {
  while (At(TokenKind::kDotWord)) {
    if (!ParseFunctionDirective(function)) return false;
  }
  return true;
}

// function-directive := '.noreturn' | pragma | dot-word ( int ( ',' int )* | other tokens up to the next directive )
bool Parser::ParseFunctionDirective(Function& function) {
  if (MatchWord(".noreturn")) {
    function.noreturn = true;
    return true;
  }
  FunctionDirective directive{.name = token_.text.substr(1), .values = {}, .text = {}};
  if (AtWord(".pragma")) {
    if (!ParsePragma(directive.text)) return false;
  } else {
    Advance();
    if (AtConstant(WarpSize::kNumber)) {
      do {
        if (!ParseInteger(directive.values.emplace_back(), "a number")) return false;
      } while (Match(TokenKind::kComma));
    } else {
      std::string text;
      while (At(TokenKind::kIdent) || At(TokenKind::kString) || At(TokenKind::kComma)) AppendToken(text);
      directive.text = module_.strings.Intern(text);
    }
  }
  function.directives.push_back(std::move(directive));
  return true;
}

// body := block       the parameters are in a scope around it
bool Parser::ParseBody(Function& function) {
  symbols_.PushScope();
  const std::size_t first_pending = pending_.size();
  for (Variable& variable : function.returns) Declare(variable);
  for (Variable& variable : function.params) Declare(variable);
  // One that was left unread stays where it is: other threads ask at any time whether the function has a body.
  if (function.body == nullptr) function.body = std::make_unique<Block>();
  const bool ok = ParseBlock(*function.body);
  CloseScope(first_pending);
  return ok;
}

// The same without a look at what is in it.
bool Parser::LeaveBody(Function& function) {
  function.body = std::make_unique<Block>();
  const SourceLoc loc = function.body->loc = token_.loc;
  if (has_ahead_) return FailAt(loc, "a token was read ahead of a body");
  lazy_->Add(function, {lexer_, token_});
  const bool closed = lexer_.SkipBlock();
  Advance();
  function.body->end_loc = token_.loc;
  return closed || FailAt(loc, "block without its closing '}'");
}

void Parser::ReadBody(Function& function, const LazyBodies::Place& place, SymbolTable& symbols) {
  std::swap(symbols_, symbols);
  lexer_ = place.lexer;
  token_ = place.token;
  has_ahead_ = false;
  ParseBody(function);
  ResolveAtModuleEnd();
  std::swap(symbols_, symbols);
}

}  // namespace gridloom::ptx
