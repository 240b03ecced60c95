// Splits PTX text into tokens (PTX ISA, chapter 4). Never fails: what is no token becomes one of kind kError, and the
// lexer goes on after it. Tokens are views into the text, which must outlive them.
#pragma once

#include <cstdint>
#include <string_view>

#include "rewriter/support/diagnostic.h"

namespace gridloom::ptx {

//  X(enumerator, how messages call it)
#define GL_PTX_TOKENS(X)       \
  X(kEnd, "end of input")      \
  X(kError, "malformed token") \
  X(kIdent, "identifier")      \
  X(kDotWord, "directive")     \
  X(kInt, "integer")           \
  X(kFloat, "number")          \
  X(kString, "string")         \
  X(kLParen, "'('")            \
  X(kRParen, "')'")            \
  X(kLBracket, "'['")          \
  X(kRBracket, "']'")          \
  X(kLBrace, "'{'")            \
  X(kRBrace, "'}'")            \
  X(kComma, "','")             \
  X(kSemicolon, "';'")         \
  X(kColon, "':'")             \
  X(kAt, "'@'")                \
  X(kQuestion, "'?'")          \
  X(kAssign, "'='")            \
  X(kPlus, "'+'")              \
  X(kMinus, "'-'")             \
  X(kStar, "'*'")              \
  X(kSlash, "'/'")             \
  X(kPercent, "'%'")           \
  X(kAmp, "'&'")               \
  X(kPipe, "'|'")              \
  X(kCaret, "'^'")             \
  X(kTilde, "'~'")             \
  X(kBang, "'!'")              \
  X(kLess, "'<'")              \
  X(kGreater, "'>'")           \
  X(kLessEqual, "'<='")        \
  X(kGreaterEqual, "'>='")     \
  X(kEqual, "'=='")            \
  X(kNotEqual, "'!='")         \
  X(kAndAnd, "'&&'")           \
  X(kOrOr, "'||'")             \
  X(kShiftLeft, "'<<'")        \
  X(kShiftRight, "'>>'")       \
  X(kEllipsis, "'...'")

enum class TokenKind : std::uint8_t {
#define X(id, text) id,
  GL_PTX_TOKENS(X)
#undef X
};

/// Name of a token kind for messages: "']'", "identifier".
std::string_view NameOf(TokenKind kind);

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool first_on_line = false;
  SourceLoc loc;
  /// The spelling. kDotWord keeps its dot (".shared::cta"); kString is without its quotes; kError holds the reason.
  std::string_view text;
  /// Where the token starts and ends in the text, quotes included.
  const char* begin = nullptr;
  const char* end = nullptr;
};

class Lexer {
 public:
  /// Reads up to the first NUL byte or the end of `text`.
  explicit Lexer(std::string_view text);

  Token Next();
  /// Goes behind the '}' of the block that it is in; false when there is none.
  bool SkipBlock();
  /// Goes on with the next line that begins with `word`, blanks aside, whatever is in between; false when there is
  /// none.
  bool SkipToLine(std::string_view word);

 private:
  const char* SkipBlanks(bool& first_on_line);
  const char* SkipBlockComment(const char* p);
  Token Make(TokenKind kind, const char* begin, const char* end);
  Token Fail(const char* begin, const char* end, std::string_view reason);
  Token LexNumber(const char* p);
  Token LexHexFloat(const char* p, int digits);
  Token LexString(const char* p);
  Token LexDotWord(const char* p);
  Token LexPunctuation(const char* p);

  const char* at_;
  const char* end_;
  const char* line_start_;
  std::uint32_t line_ = 1;
  bool fresh_line_ = true;
  bool unterminated_comment_ = false;
};

}  // namespace gridloom::ptx
