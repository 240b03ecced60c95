#include "rewriter/support/printable.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"

namespace gridloom {
namespace {

TEST_CASE("Printable_ControlCharacters_BecomeEscapes") {
  CHECK(Printable("plain, with signs: ~!@") == "plain, with signs: ~!@");
  CHECK(Printable("\033[2J\033]0;title\007") == "\\x1b[2J\\x1b]0;title\\x07");
  CHECK(Printable("a\nb\tc\rd") == "a\\x0ab\\x09c\\x0dd");
  CHECK(Printable(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(Printable("\xc2\x9b"
                  "31m") == "\\x9b31m");  // CSI as one character
  CHECK(Printable("\xc2\x85") == "\\x85");
}

TEST_CASE("Printable_MarksOfDirectionAndSeparators_BecomeEscapes") {
  CHECK(Printable("user\u202enimda") == "user\\u202enimda");
  CHECK(Printable("\u2066x\u2069\u200f\u061c\u2028") == "\\u2066x\\u2069\\u200f\\u061c\\u2028");
}

TEST_CASE("Printable_LettersOfAllKinds_Stay") {
  for (const char* text : {"größe", "ядро", "核函数", "ガス", "🙂", "…", "\u00a0", "\U0010ffff"})
    CHECK(Printable(text) == text);
}

TEST_CASE("Printable_BytesThatAreNoUtf8_BecomeEscapes") {
  CHECK(Printable("a\xff"
                  "b") == "a\\xffb");
  CHECK(Printable("\xc3") == "\\xc3");                             // cut off
  CHECK(Printable("\xc0\x80") == "\\xc0\\x80");                    // an overlong zero
  CHECK(Printable("\xe0\x80\x9b") == "\\xe0\\x80\\x9b");           // an overlong CSI
  CHECK(Printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // half of a surrogate pair
  CHECK(Printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST_CASE("PrintableText_KeepsLinesAlone") {
  CHECK(PrintableText("a\n\tb\033[31mred\033[0m\n") == "a\n\tb\\x1b[31mred\\x1b[0m\n");
}

TEST_CASE("PrintableLines_KeepsLinesAndColoursOnly") {
  CHECK(PrintableLines("a\n\tb\033[31mred\033[0m\n") == "a\n\tb\033[31mred\033[0m\n");
  CHECK(PrintableLines("\033[2J\033[1;1H\033[999m\r") == "\\x1b[2J\\x1b[1;1H\\x1b[999m\\x0d");
}

TEST_CASE("Table_CellsThatWouldBreakIt_AreShownAsEscapes") {
  Table table({"name", "text"});
  table.Add({"k\033[2J", "two\nlines"});
  CHECK(table.Text(0) ==
        "name      text\n"
        "k\\x1b[2J  two\\nlines\n");
}

TEST_CASE("JsonText_AnyBytes_GiveValidJsonThatDoesNothingToATerminal") {
  using Json = nlohmann::ordered_json;
  const Json json{{"name", "a\xff\033[2J"}, {"other", "\u202e\xc2\x9bgröße\x7f"}};
  const std::string text = JsonText(json);
  CHECK(text == "{\"name\":\"a\uFFFD\\u001b[2J\",\"other\":\"\\u202e\\u009bgröße\\u007f\"}");
  CHECK(Json::parse(text)["other"] == json["other"]);
  CHECK(JsonText(json, 2).find('\n') != std::string::npos);
}

TEST_CASE("ParseJson_WhatIsNoneOrNestedTooDeeply_IsDiscarded") {
  using Json = nlohmann::json;
  CHECK(ParseJson<Json>("{\"a\": [1, \"[[\\\"{{\"]}")["a"][0] == 1);
  CHECK(ParseJson<Json>("{").is_discarded());
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(ParseJson<Json>(nested(kDeepestJson)).is_array());
  CHECK(ParseJson<Json>(nested(kDeepestJson + 1)).is_discarded());
  CHECK(ParseJson<Json>(nested(1'000'000)).is_discarded());
}

}  // namespace
}  // namespace gridloom
