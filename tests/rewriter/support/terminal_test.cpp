#include "rewriter/support/terminal.h"

#include <catch2/catch.hpp>

namespace gridloom {
namespace {

TEST_CASE("SizeText_UsesTheLargestUnitThatFits") {
  CHECK(SizeText(0) == "0 B");
  CHECK(SizeText(1023) == "1023 B");
  CHECK(SizeText(1024) == "1.0 KiB");
  CHECK(SizeText(150109880320) == "139.8 GiB");
}

TEST_CASE("Cut_KeepsWhatFitsAndMarksTheRest") {
  CHECK(Cut("abcdef", 6) == "abcdef");
  CHECK(Cut("abcdef", 4) == "abc…");
  CHECK(Cut("größe", 5) == "größe");
  CHECK(Cut("größe", 4) == "gr…");
  CHECK(Cut("abc", 0) == "");
}

TEST_CASE("Width_CountsCharactersNotBytesNorColours") {
  CHECK(Width("größe") == 5);
  CHECK(Width("\033[31mred\033[0m") == 3);
}

TEST_CASE("Table_AlignsColumnsAndLeavesNoBlanksAtTheEnd") {
  Table table({"name", ">size", "text"});
  table.Add({"a", "1", "first"});
  table.Add({"longer", "1000", ""});
  CHECK(table.Text(2) ==
        "  name    size  text\n"
        "  a          1  first\n"
        "  longer  1000\n");
}

}  // namespace
}  // namespace gridloom
