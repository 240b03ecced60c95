#include "rewriter/ptx/lexer.h"

#include <array>
#include <cstring>

namespace gridloom::ptx {
namespace {

constexpr std::string_view kTokenNames[] = {
#define X(id, text) text,
    GL_PTX_TOKENS(X)
#undef X
};

enum CharClass : std::uint8_t {
  kBlank = 1,  // space, tab, CR, FF, VT
  kDigit = 2,
  kHexDigit = 4,
  kNameStart = 8,  // a-z A-Z _ $
  kName = 16,      // name start or digit
  kOfBlocks = 32,  // what matters to who looks for the end of a block
};

constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> table{};
  for (const char c : {' ', '\t', '\r', '\f', '\v'}) table[static_cast<unsigned char>(c)] |= kBlank;
  for (const char c : {'\n', '{', '}', '"', '/'}) table[static_cast<unsigned char>(c)] |= kOfBlocks;
  for (int c = '0'; c <= '9'; ++c) table[c] |= kDigit | kHexDigit | kName;
  for (int c = 0; c < 26; ++c) {
    table['a' + c] |= kNameStart | kName;
    table['A' + c] |= kNameStart | kName;
    if (c < 6) {
      table['a' + c] |= kHexDigit;
      table['A' + c] |= kHexDigit;
    }
  }
  table['_'] |= kNameStart | kName;
  table['$'] |= kNameStart | kName;
  return table;
}();

bool Is(char c, CharClass cls) { return (kClasses[static_cast<unsigned char>(c)] & cls) != 0; }

const char* SkipWhile(const char* p, const char* end, CharClass cls) {
  while (p != end && Is(*p, cls)) ++p;
  return p;
}

const char* LineEnd(const char* p, const char* end) {
  const void* newline = std::memchr(p, '\n', static_cast<std::size_t>(end - p));
  return newline != nullptr ? static_cast<const char*>(newline) : end;
}

// `# 12 "file.cu"` and `#line 12`, left by a preprocessor, mean nothing here.
bool IsLineMarker(const char* p, const char* end) {
  p = SkipWhile(p + 1, end, kBlank);
  return p != end && (Is(*p, kDigit) || std::string_view(p, static_cast<std::size_t>(end - p)).starts_with("line"));
}

// exponent := ( 'e' | 'E' ) ( '+' | '-' )? dec+       `p` itself when there is none
const char* SkipExponent(const char* p, const char* end) {
  if (p == end || (*p | 0x20) != 'e') return p;
  const char* digits = p + 1;
  if (digits != end && (*digits == '+' || *digits == '-')) ++digits;
  return digits != end && Is(*digits, kDigit) ? SkipWhile(digits, end, kDigit) : p;
}

struct TwoChars {
  char first, second;
  TokenKind kind;
};
constexpr TwoChars kTwoCharTokens[] = {
    {'<', '=', TokenKind::kLessEqual}, {'>', '=', TokenKind::kGreaterEqual}, {'=', '=', TokenKind::kEqual},
    {'!', '=', TokenKind::kNotEqual},  {'&', '&', TokenKind::kAndAnd},       {'|', '|', TokenKind::kOrOr},
    {'<', '<', TokenKind::kShiftLeft}, {'>', '>', TokenKind::kShiftRight},
};

constexpr std::array<TokenKind, 128> kOneCharTokens = [] {
  std::array<TokenKind, 128> table{};
  table.fill(TokenKind::kError);
  table['('] = TokenKind::kLParen;
  table[')'] = TokenKind::kRParen;
  table['['] = TokenKind::kLBracket;
  table[']'] = TokenKind::kRBracket;
  table['{'] = TokenKind::kLBrace;
  table['}'] = TokenKind::kRBrace;
  table[','] = TokenKind::kComma;
  table[';'] = TokenKind::kSemicolon;
  table[':'] = TokenKind::kColon;
  table['@'] = TokenKind::kAt;
  table['?'] = TokenKind::kQuestion;
  table['='] = TokenKind::kAssign;
  table['+'] = TokenKind::kPlus;
  table['-'] = TokenKind::kMinus;
  table['*'] = TokenKind::kStar;
  table['/'] = TokenKind::kSlash;
  table['%'] = TokenKind::kPercent;
  table['&'] = TokenKind::kAmp;
  table['|'] = TokenKind::kPipe;
  table['^'] = TokenKind::kCaret;
  table['~'] = TokenKind::kTilde;
  table['!'] = TokenKind::kBang;
  table['<'] = TokenKind::kLess;
  table['>'] = TokenKind::kGreater;
  return table;
}();

}  // namespace

std::string_view NameOf(TokenKind kind) { return kTokenNames[static_cast<std::size_t>(kind)]; }

Lexer::Lexer(std::string_view text) : at_(text.data()), end_(text.data() + text.size()), line_start_(text.data()) {
  if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;  // a byte order mark
  if (!text.empty()) {
    if (const void* nul = std::memchr(text.data(), '\0', text.size())) end_ = static_cast<const char*>(nul);
  }
}

Token Lexer::Make(TokenKind kind, const char* begin, const char* end) {
  Token token;
  token.kind = kind;
  token.loc = {line_, static_cast<std::uint32_t>(begin - line_start_ + 1)};
  token.text = {begin, static_cast<std::size_t>(end - begin)};
  token.begin = begin;
  token.end = end;
  at_ = end;
  return token;
}

Token Lexer::Fail(const char* begin, const char* end, std::string_view reason) {
  Token token = Make(TokenKind::kError, begin, end);
  token.text = reason;
  return token;
}

// Comments are blanks. Sets at_ after it; an unterminated one swallows the rest and is reported as the last token.
const char* Lexer::SkipBlockComment(const char* p) {
  for (p += 2; p != end_; ++p) {
    if (*p == '\n') {
      ++line_;
      line_start_ = p + 1;
      fresh_line_ = true;
    } else if (*p == '*' && p + 1 != end_ && p[1] == '/') {
      return p + 2;
    }
  }
  unterminated_comment_ = true;
  return p;
}

const char* Lexer::SkipBlanks(bool& first_on_line) {
  const char* p = at_;
  while (p != end_) {
    const char c = *p;
    if (Is(c, kBlank)) {
      ++p;
    } else if (c == '\n') {
      ++line_;
      line_start_ = ++p;
      fresh_line_ = true;
    } else if (c == '/' && p + 1 != end_ && p[1] == '/') {
      p = LineEnd(p, end_);
    } else if (c == '/' && p + 1 != end_ && p[1] == '*') {
      p = SkipBlockComment(p);
    } else if (c == '#' && fresh_line_ && IsLineMarker(p, end_)) {
      p = LineEnd(p, end_);
    } else {
      break;
    }
  }
  first_on_line = fresh_line_;
  fresh_line_ = false;
  return p;
}

bool Lexer::SkipBlock() {
  fresh_line_ = false;
  for (std::size_t depth = 1; at_ != end_;) {
    const char c = *at_++;
    if (!Is(c, kOfBlocks)) continue;
    if (c == '\n') {
      ++line_;
      line_start_ = at_;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      if (--depth == 0) return true;
    } else if (c == '"') {
      while (at_ != end_ && *at_ != '"' && *at_ != '\n') ++at_;
      if (at_ != end_ && *at_ == '"') ++at_;
    } else if (at_ != end_ && *at_ == '/') {
      at_ = LineEnd(at_, end_);
    } else if (at_ != end_ && *at_ == '*') {
      at_ = SkipBlockComment(at_ - 1);
    }
  }
  return false;
}

bool Lexer::SkipToLine(std::string_view word) {
  while (at_ != end_) {
    at_ = LineEnd(at_, end_);
    if (at_ == end_) break;
    line_start_ = ++at_;
    ++line_;
    const char* const p = SkipWhile(at_, end_, kBlank);
    if (!std::string_view(p, static_cast<std::size_t>(end_ - p)).starts_with(word)) continue;
    fresh_line_ = true;
    return true;
  }
  return false;
}

Token Lexer::Next() {
  bool first_on_line = false;
  const char* p = SkipBlanks(first_on_line);
  Token token;
  if (p == end_) {
    token = unterminated_comment_ ? Fail(p, p, "comment without its end '*/'") : Make(TokenKind::kEnd, p, p);
    unterminated_comment_ = false;
  } else if (Is(*p, kNameStart)) {
    token = Make(TokenKind::kIdent, p, SkipWhile(p + 1, end_, kName));
  } else if (*p == '%' && p + 1 != end_ && Is(p[1], kName)) {
    token = Make(TokenKind::kIdent, p, SkipWhile(p + 2, end_, kName));
  } else if (*p == '.') {
    token = LexDotWord(p);
  } else if (Is(*p, kDigit)) {
    token = LexNumber(p);
  } else if (*p == '"') {
    token = LexString(p);
  } else {
    token = LexPunctuation(p);
  }
  token.first_on_line = first_on_line;
  return token;
}

// dot-word := '.' name-char+ ( '::' name-char+ )*      .global  .shared::cta  .L2::128B  .2d  .m16n8k16
// A number may start with its dot: no dot-word has digits only.
Token Lexer::LexDotWord(const char* p) {
  if (end_ - p >= 3 && p[1] == '.' && p[2] == '.') return Make(TokenKind::kEllipsis, p, p + 3);
  if (const char* q = SkipWhile(p + 1, end_, kDigit); q != p + 1) {
    q = SkipExponent(q, end_);
    if (q == end_ || !Is(*q, kName)) return Make(TokenKind::kFloat, p, q);
  }
  const char* q = SkipWhile(p + 1, end_, kName);
  if (q == p + 1) return Fail(p, q, "a lone '.'");
  while (end_ - q >= 3 && q[0] == ':' && q[1] == ':' && Is(q[2], kName)) q = SkipWhile(q + 2, end_, kName);
  return Make(TokenKind::kDotWord, p, q);
}

// number := '0x' hex+ 'U'? | '0b' bin+ 'U'? | '0' oct* 'U'? | dec+ 'U'? | '0f' hex{8} | '0d' hex{16}
//         | dec+ '.' dec* exponent? | dec+ exponent           ( '.' dec+ exponent? is read with the dot-words )
Token Lexer::LexNumber(const char* p) {
  const char marker = *p == '0' && p + 1 != end_ ? static_cast<char>(p[1] | 0x20) : '\0';
  if (marker == 'f') return LexHexFloat(p, 8);
  if (marker == 'd') return LexHexFloat(p, 16);
  TokenKind kind = TokenKind::kInt;
  const char* q = p;
  if (marker == 'x' || marker == 'b') {
    q = SkipWhile(p + 2, end_, marker == 'x' ? kHexDigit : kDigit);
    if (q == p + 2) return Fail(p, SkipWhile(q, end_, kName), "number without digits after its prefix");
  } else {
    q = SkipWhile(p, end_, kDigit);
    if (q != end_ && *q == '.' && !(q + 1 != end_ && Is(q[1], kNameStart) && (q[1] | 0x20) != 'e')) {
      kind = TokenKind::kFloat;
      q = SkipWhile(q + 1, end_, kDigit);
    }
    if (const char* after = SkipExponent(q, end_); after != q) {
      kind = TokenKind::kFloat;
      q = after;
    }
  }
  if (kind == TokenKind::kInt && q != end_ && *q == 'U') ++q;
  if (q != end_ && Is(*q, kName)) return Fail(p, SkipWhile(q, end_, kName), "malformed number");
  return Make(kind, p, q);
}

Token Lexer::LexHexFloat(const char* p, int digits) {
  const char* q = SkipWhile(p + 2, end_, kHexDigit);
  const bool whole = q - p == digits + 2 && (q == end_ || !Is(*q, kName));
  if (whole) return Make(TokenKind::kFloat, p, q);
  return Fail(p, SkipWhile(q, end_, kName),
              digits == 8 ? "0f needs exactly 8 hexadecimal digits" : "0d needs exactly 16 hexadecimal digits");
}

// string := '"' any character but '"' and newline '"'       a backslash is a character like any other
Token Lexer::LexString(const char* p) {
  const char* q = p + 1;
  while (q != end_ && *q != '"' && *q != '\n') ++q;
  if (q == end_ || *q != '"') return Fail(p, q, "string without its closing quote");
  Token token = Make(TokenKind::kString, p, q + 1);
  token.text = {p + 1, static_cast<std::size_t>(q - p - 1)};
  return token;
}

Token Lexer::LexPunctuation(const char* p) {
  if (p + 1 != end_) {
    for (const TwoChars& two : kTwoCharTokens) {
      if (p[0] == two.first && p[1] == two.second) return Make(two.kind, p, p + 2);
    }
  }
  const auto c = static_cast<unsigned char>(*p);
  if (c == '#') return Fail(p, LineEnd(p, end_), "preprocessor directive in PTX text (preprocess the file first)");
  const TokenKind kind = c < kOneCharTokens.size() ? kOneCharTokens[c] : TokenKind::kError;
  if (kind == TokenKind::kError) return Fail(p, p + 1, "character that no PTX token starts with");
  return Make(kind, p, p + 1);
}

}  // namespace gridloom::ptx
