#include "rewriter/ptx/parser.h"

#include <algorithm>

#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {

std::unique_ptr<Module> ParseModule(std::string_view text, DiagnosticSink& sink) {
  auto module = std::make_unique<Module>();
  const std::string_view kept = module->strings.Adopt(text);
  Parser(*module, kept, sink).ParseModule();
  return module;
}

Parser::Parser(Module& module, std::string_view text, DiagnosticSink& sink, LazyBodies* lazy)
    : module_(module), lazy_(lazy), sink_(sink), text_(text), lexer_(text) {
  Advance();
}

// ---------------------------------------------------------------------------------------------------------------------
// Tokens
// ---------------------------------------------------------------------------------------------------------------------

void Parser::Advance() {
  last_end_ = token_.end;
  if (has_ahead_) {
    token_ = ahead_;
    has_ahead_ = false;
  } else {
    token_ = lexer_.Next();
  }
}

const Token& Parser::Ahead() {
  if (!has_ahead_) {
    ahead_ = lexer_.Next();
    has_ahead_ = true;
  }
  return ahead_;
}

bool Parser::Match(TokenKind kind) {
  if (token_.kind != kind) return false;
  Advance();
  return true;
}

bool Parser::MatchWord(std::string_view text) {
  if (!AtWord(text)) return false;
  Advance();
  return true;
}

bool Parser::Expect(TokenKind kind, std::string_view context) {
  if (Match(kind)) return true;
  return Fail(std::string(NameOf(kind)) + ' ' + std::string(context));
}

bool Parser::ExpectName(std::string_view& name, std::string_view context) {
  if (!At(TokenKind::kIdent)) return Fail(context);
  name = token_.text;
  Advance();
  return true;
}

std::string Parser::Found() const {
  switch (token_.kind) {
    case TokenKind::kEnd: return "the end of the text";
    case TokenKind::kError: return std::string(token_.text);
    case TokenKind::kString: return "a string";
    default: break;
  }
  constexpr std::size_t kLongest = 60;
  if (token_.text.size() <= kLongest) return "'" + std::string(token_.text) + "'";
  return "'" + std::string(token_.text.substr(0, kLongest)) + "…'";
}

bool Parser::Fail(std::string_view expected) {
  if (token_.kind == TokenKind::kError) return FailAt(token_.loc, std::string(token_.text));
  return FailAt(token_.loc, "expected " + std::string(expected) + ", found " + Found());
}

bool Parser::FailAt(SourceLoc loc, std::string message) {
  sink_.Error(loc, std::move(message));
  return false;
}

// ---------------------------------------------------------------------------------------------------------------------
// Module level
// ---------------------------------------------------------------------------------------------------------------------

// module := module-item*
void Parser::ParseModule() {
  while (!At(TokenKind::kEnd) && !sink_.full()) ParseModuleItem();
  ResolveAtModuleEnd();
}

// module-item := version | target | address-size | linkage? (variable | function) | alias | file | section
//              | '.pragma' … | unknown-directive | ';'
void Parser::ParseModuleItem() {
  const auto text_item = [this](auto&& rule) {
    TextDirective directive{.loc = token_.loc, .name = token_.text, .text = {}};
    if (!rule(directive)) return false;
    module_.items.emplace_back(directive);
    return true;
  };
  const char* const start = token_.begin;
  bool ok = false;
  if (Match(TokenKind::kSemicolon)) {
    ok = true;
  } else if (!At(TokenKind::kDotWord)) {
    ok = Fail("a directive such as .entry, .func or .global");
  } else if (AtWord(".version")) {
    ok = ParseVersion();
  } else if (AtWord(".target")) {
    ok = ParseTarget();
  } else if (AtWord(".address_size")) {
    ok = ParseAddressSize();
  } else if (AtWord(".alias")) {
    ok = ParseAlias();
  } else if (AtWord(".file")) {
    ok = text_item([this](TextDirective& out) { return ParseFile(out); });
  } else if (AtWord(".section") || AtWord(".nv_intermediate_source_section")) {
    ok = text_item([this](TextDirective& out) { return ParseSection(out); });
  } else if (AtWord(".pragma")) {
    ok = text_item([this](TextDirective& out) { return ParsePragma(out.text); });
  } else {
    Linkage linkage = Linkage::kInternal;
    const bool has_linkage = ParseLinkage(linkage);
    if (AtWord(".entry") || AtWord(".func")) {
      ok = ParseFunction(linkage);
    } else if (has_linkage || (At(TokenKind::kDotWord) && StartsDeclaration(token_.text))) {
      ok = ParseModuleVariable(linkage);
    } else {
      ok = text_item([this](TextDirective& out) { return ParseUnknownDirective(out); });
    }
  }
  if (!ok) RecoverAtModule(start);
}

// Skips past the ';' that ends the item, or up to a directive that starts a line and an item. `start` is where
// the item began: something is skipped in any case.
void Parser::RecoverAtModule(const char* start) {
  constexpr std::string_view kStarts[] = {".version", ".target", ".address_size", ".visible", ".extern", ".weak",
                                          ".common",  ".entry",  ".func",         ".global",  ".const",  ".shared",
                                          ".section", ".alias",  ".file",         ".pragma"};
  int depth = 0;
  while (!At(TokenKind::kEnd)) {
    const TokenKind kind = token_.kind;
    const bool starts =
        kind == TokenKind::kDotWord && token_.first_on_line && std::ranges::count(kStarts, token_.text) != 0;
    if (starts && depth <= 0 && token_.begin != start) return;
    if (kind == TokenKind::kLBrace) ++depth;
    if (kind == TokenKind::kRBrace) --depth;
    Advance();
    if (depth <= 0 && kind == TokenKind::kSemicolon) return;
  }
}

// version := '.version' int '.' int
bool Parser::ParseVersion() {
  Advance();
  const std::size_t dot = token_.text.find('.');
  std::uint64_t major = 0, minor = 0;
  const auto number = [](std::string_view digits, std::uint64_t& out) {
    for (const char c : digits) {
      if (c < '0' || c > '9') return false;
      out = out * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return !digits.empty() && digits.size() <= 4;
  };
  if (!At(TokenKind::kFloat) || dot == std::string_view::npos || !number(token_.text.substr(0, dot), major) ||
      !number(token_.text.substr(dot + 1), minor)) {
    return Fail("a version such as 8.0 after .version");
  }
  module_.version_major = static_cast<std::uint32_t>(major);
  module_.version_minor = static_cast<std::uint32_t>(minor);
  Advance();
  return true;
}

// target := '.target' ident ( ',' ident )*
bool Parser::ParseTarget() {
  Advance();
  do {
    std::string_view name;
    if (!ExpectName(name, "a target such as sm_90 after .target")) return false;
    module_.targets.push_back(name);
  } while (Match(TokenKind::kComma));
  return true;
}

// address-size := '.address_size' ( '32' | '64' )
bool Parser::ParseAddressSize() {
  Advance();
  const SourceLoc loc = token_.loc;
  std::uint32_t bits = 0;
  if (!ParseInteger32(bits, "32 or 64 after .address_size")) return false;
  if (bits != 32 && bits != 64)
    return FailAt(loc, "expected 32 or 64 after .address_size, found " + std::to_string(bits));
  module_.address_size = bits;
  module_.has_address_size = true;
  return true;
}

// alias := '.alias' ident ',' ident ';'
bool Parser::ParseAlias() {
  AliasDirective alias{.loc = token_.loc, .alias = {}, .aliasee = {}};
  Advance();
  if (!ExpectName(alias.alias, "the alias' name after .alias") ||
      !Expect(TokenKind::kComma, "between the names of .alias") ||
      !ExpectName(alias.aliasee, "the aliased function's name") || !Expect(TokenKind::kSemicolon, "after .alias")) {
    return false;
  }
  module_.items.emplace_back(alias);
  return true;
}

// file := '.file' int string string? ( ',' int ',' int )?       two strings, folder and file, from clang 14
bool Parser::ParseFile(TextDirective& out) {
  Advance();
  std::string text;
  if (!At(TokenKind::kInt)) return Fail("a file number after .file");
  AppendToken(text);
  if (!At(TokenKind::kString)) return Fail("a file name after .file");
  AppendToken(text);
  if (At(TokenKind::kString)) AppendToken(text);
  while (At(TokenKind::kComma)) {
    AppendToken(text);
    if (!At(TokenKind::kInt)) return Fail("a number after ',' in .file");
    AppendToken(text);
  }
  out.text = module_.strings.Intern(text);
  return true;
}

// section := ( '.section' name | '.nv_intermediate_source_section' ) '{' any balanced text '}'
// The text is kept as written.
// In it, what stands between a '.source_begin' and a line that begins with '.source_end' is in another language: it is
// not looked at.
bool Parser::ParseSection(TextDirective& out) {
  const bool named = AtWord(".section");
  Advance();
  const char* begin = token_.begin;
  if (named && !Match(TokenKind::kDotWord) && !Match(TokenKind::kIdent)) return Fail("a section name after .section");
  const SourceLoc open = token_.loc;
  if (!Expect(TokenKind::kLBrace, named ? "after the section's name" : "after .nv_intermediate_source_section"))
    return false;
  for (int depth = 1; depth > 0; Advance()) {
    if (At(TokenKind::kEnd)) return FailAt(open, "section without its closing '}'");
    if (At(TokenKind::kLBrace)) ++depth;
    if (At(TokenKind::kRBrace)) --depth;
    if (AtWord(".source_begin") && !lexer_.SkipToLine(".source_end"))
      return FailAt(token_.loc, ".source_begin without a line .source_end");
  }
  out.text = {begin, static_cast<std::size_t>(last_end_ - begin)};
  return true;
}

// pragma := '.pragma' string ( ',' string )* ';'       `text` gets the strings and the semicolon
bool Parser::ParsePragma(std::string_view& text) {
  Advance();
  std::string joined;
  do {
    if (!joined.empty()) joined += ',';
    if (!At(TokenKind::kString)) return Fail("a string after .pragma");
    AppendToken(joined);
  } while (Match(TokenKind::kComma));
  if (!Expect(TokenKind::kSemicolon, "after .pragma")) return false;
  text = module_.strings.Intern(joined + ';');
  return true;
}

// Appends the current token, a blank before it where one belongs, and goes to the next. Always true.
bool Parser::AppendToken(std::string& out) {
  const bool tight = out.empty() || At(TokenKind::kComma) || At(TokenKind::kSemicolon);
  if (!tight) out += ' ';
  out.append(token_.begin, token_.end);
  Advance();
  return true;
}

// A directive no rule knows goes up to its ';', its closing '}', or the next directive that starts a line.
bool Parser::ParseUnknownDirective(TextDirective& out) {
  std::string text;
  int depth = 0;
  for (Advance(); !At(TokenKind::kEnd);) {
    if (depth == 0 &&
        (At(TokenKind::kRBrace) || (token_.first_on_line && (At(TokenKind::kDotWord) || block_depth_ > 0))))
      break;
    const TokenKind kind = token_.kind;
    if (kind == TokenKind::kError) return Fail("a directive");
    AppendToken(text);
    if (kind == TokenKind::kLBrace) ++depth;
    if (kind == TokenKind::kRBrace && --depth == 0) break;
    if (kind == TokenKind::kSemicolon && depth == 0) break;
  }
  if (depth != 0) return FailAt(out.loc, "directive " + std::string(out.name) + " without its closing '}'");
  out.text = module_.strings.Intern(text);
  return true;
}

}  // namespace gridloom::ptx
