#include "rewriter/ptx/lexer.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace gridloom;
using namespace gridloom::ptx;

namespace {

std::vector<Token> Lex(std::string_view text) {
  Lexer lexer(text);
  std::vector<Token> tokens;
  do tokens.push_back(lexer.Next());
  while (tokens.back().kind != TokenKind::kEnd);
  tokens.pop_back();
  return tokens;
}

Token LexOne(std::string_view text) {
  const std::vector<Token> tokens = Lex(text);
  REQUIRE(tokens.size() == 1);
  return tokens[0];
}

}  // namespace

TEST_CASE("Lexer_Names_KeepPercentDollarAndUnderscore") {
  for (const std::string_view name : {"%r1", "$L__BB0_1", "_", "_Z3fooPf", "a$b", "%envreg3", "%1"}) {
    const Token token = LexOne(name);
    CHECK(token.kind == TokenKind::kIdent);
    CHECK(token.text == name);
  }
}

TEST_CASE("Lexer_DotWords_KeepColonsAndLeadingDigits") {
  for (const std::string_view word : {".global", ".shared::cta", ".2d", ".m16n8k16", ".L2::cache_hint",
                                      ".tile::gather4", ".im2col::w::128", ".b6x16_p32"}) {
    const Token token = LexOne(word);
    CHECK(token.kind == TokenKind::kDotWord);
    CHECK(token.text == word);
  }
}

TEST_CASE("Lexer_Numbers_AreIntegerOrFloat") {
  for (const std::string_view text : {"0", "42", "017", "0x1F", "0b101", "42U", "0xFFU"})
    CHECK(LexOne(text).kind == TokenKind::kInt);
  for (const std::string_view text : {"1.5", "1.", "1e10", "2.5E-3", "0f3F800000", "0d3FF0000000000000"}) {
    CHECK(LexOne(text).kind == TokenKind::kFloat);
  }
  for (const std::string_view text : {"0x", "0f3F8", "0d3FF", "12ab", "0f3F8000000"})
    CHECK(LexOne(text).kind == TokenKind::kError);
}

TEST_CASE("Lexer_Comments_AreBlanksAndCountLines") {
  const auto tokens = Lex("a // one\n/* two\n three */ b\r\nc");
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[1].loc == SourceLoc{3, 11});
  CHECK(tokens[2].loc == SourceLoc{4, 1});
  CHECK(tokens[2].first_on_line);
}

TEST_CASE("Lexer_UnterminatedCommentOrString_IsOneError") {
  CHECK(LexOne("/* never closed").kind == TokenKind::kError);
  CHECK(LexOne("\"never closed").kind == TokenKind::kError);
}

TEST_CASE("Lexer_NulByte_EndsTheText") { CHECK(Lex(std::string_view("a\0b", 3)).size() == 1); }

TEST_CASE("Lexer_LineMarkers_AreSkippedAndOtherDirectivesReported") {
  CHECK(Lex("# 12 \"a.cu\"\n#line 4\nx").size() == 1);
  CHECK(LexOne("#define N 4").kind == TokenKind::kError);
}
