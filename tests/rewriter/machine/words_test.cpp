// Words of kernels of this project, as the compiler made them, with their text. scripts/machine-oracle compares all of
// them with nvdisasm; this file has one of each format, so that a change of the table is seen where there is no
// nvdisasm.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "rewriter/machine/instruction.h"
#include "rewriter/machine/print.h"

namespace gridloom::machine {
namespace {

Word FromHex(const std::string& text) {
  return {std::stoull(text.substr(18, 16), nullptr, 16), std::stoull(text.substr(2, 16), nullptr, 16)};
}

TEST_CASE("Text_WordsOfTheCompiler_AsBefore") {
  std::ifstream file("tests/rewriter/machine/words.txt");
  REQUIRE(file);
  std::size_t words = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    unsigned sm = 0;
    std::string hex, text;
    fields >> sm >> hex;
    std::getline(fields >> std::ws, text);
    const Word word = FromHex(hex);
    const auto instruction = Decode(word, sm);
    INFO(line);
    REQUIRE(instruction);
    CHECK(Text(*instruction, 0) == text);
    CHECK(Encode(*instruction) == word);
    CHECK(Hex(word) == hex);
    ++words;
  }
  CHECK(words > 500);
}

TEST_CASE("Text_BranchTarget_IsAnAddress") {
  // BRA to the instruction itself, as every function of the compiler ends.
  const Word word{0xfffffff000007947, 0x000fc0000383ffff};
  const auto instruction = Decode(word, 80);
  REQUIRE(instruction);
  CHECK(Text(*instruction, 0) == "BRA 0x0");
  CHECK(Text(*instruction, 0x120) == "BRA 0x120");
}

TEST_CASE("Text_Control_NamesScoreboardsYieldAndStall") {
  CHECK(Text(Control{}) == "B------ W- R- Y S00");
  CHECK(Text(Control{.stall = 13, .yield = true, .write_barrier = 2, .read_barrier = 5, .wait = 0b100011}) ==
        "B01---5 W2 R5 - S13");
}

TEST_CASE("Text_UnknownWord_IsGivenInHex") {
  const Word word{0x1234567890abcdef, 0xfedcba0987654321};
  CHECK_FALSE(Decode(word, 80));
  CHECK(Hex(word) == "0xfedcba09876543211234567890abcdef");
}

}  // namespace
}  // namespace gridloom::machine
