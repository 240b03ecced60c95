// Registers, control flow and liveness of code that is put together here from words of the compiler, and from the
// table.
#include "rewriter/machine/flow.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "rewriter/machine/print.h"

namespace gridloom::machine {
namespace {

/// The word of words.txt of sm_80 whose text begins so.
Word WordOf(const std::string& text) {
  std::ifstream file("tests/rewriter/machine/words.txt");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("80 ") || line.substr(38).rfind(text, 0) != 0) continue;
    const std::string hex = line.substr(3, 34);
    return {std::stoull(hex.substr(18), nullptr, 16), std::stoull(hex.substr(2, 16), nullptr, 16)};
  }
  FAIL("no word of sm_80 begins with " << text);
  return {};
}

Word Branch(std::int64_t bytes, std::uint8_t guard) {
  auto branch = Decode(Word{0xfffffff000007947, 0x000fc0000383ffff}, 80);
  REQUIRE(branch);
  for (const Operand& operand : branch->format->operands) {
    if (operand.kind == OperandKind::kTarget)
      branch->values[operand.value] =
          static_cast<std::uint64_t>(bytes / operand.scale) & ((std::uint64_t{1} << 48) - 1);
  }
  branch->guard = guard;
  return Encode(*branch);
}

Word MoveOf(unsigned to, unsigned from) {
  Word word{0x0000000000007202, 0x000fe20000000f00};  // MOV R0, R0
  word.Set(16, 8, to);
  word.Set(32, 8, from);
  return word;
}

constexpr Word kExit{0x000000000000794d, 0x000fea0003800000};

Result<FlowGraph> GraphOf(const std::vector<Word>& words) {
  std::vector<std::byte> code(words.size() * kWordBytes);
  for (std::size_t at = 0; at < words.size(); ++at) WriteWord(code, at * kWordBytes, words[at]);
  return FlowGraph::Build(code, 80);
}

TEST_CASE("UseOf_PairsAndGuards_AreCounted") {
  const auto use = [](const Word& word) {
    const auto instruction = Decode(word, 80);
    REQUIRE(instruction);
    const RegisterUse found = UseOf(*instruction);
    return found.written.text() + " <- " + found.read.text();
  };
  CHECK(use(MoveOf(4, 9)) == "R4 <- R9");
  CHECK(use({0x00000004ff047424, 0x000fe200078e00ff}) == "R4 <- ");  // IMAD.MOV.U32 R4, RZ, RZ, 0x4
  CHECK(use({0x0000000402047981, 0x000ea8000c1e1b00}) ==
        "R4 R5 <- R2 R3 UR4 UR5");  // LDG.E.64 R4, [R2.64], by descriptor
  CHECK(use({0x0000000602007986, 0x000fe2000c101b04}) == " <- R2 R3 R6 R7 UR4 UR5");
  CHECK(use({0x0000000404068228, 0x000fe20000000000}) == "R6 R7 <- R4 R5 P0");  // @!P0 DMUL R6, R4, R4
}

TEST_CASE("FlowGraph_Loop_CarriesWhatItReads") {
  // 0: R1 = R2; 1: @P0 to 0; 2: R3 = R1; 3: exit.
  const auto graph = GraphOf({MoveOf(1, 2), Branch(-32, 0), MoveOf(3, 1), kExit});
  REQUIRE(graph.ok());
  CHECK(std::vector<std::uint32_t>(graph->Next(1).begin(), graph->Next(1).end()) == std::vector<std::uint32_t>{0, 2});
  CHECK(graph->Next(3).empty());
  CHECK(graph->IsTarget(0));
  CHECK_FALSE(graph->IsTarget(2));
  CHECK(graph->LiveBefore(0).text() == "R2 P0");
  CHECK(graph->LiveBefore(2).text() == "R1");
  CHECK(graph->LiveBefore(3).none());
}

TEST_CASE("FlowGraph_BranchWithoutGuard_HasOneWay") {
  const auto graph = GraphOf({Branch(16, kTrue), MoveOf(1, 2), kExit});
  REQUIRE(graph.ok());
  CHECK(graph->Next(0).size() == 1);
  CHECK(graph->Next(0)[0] == 2);
  CHECK(graph->LiveBefore(0).none());
}

TEST_CASE("FlowGraph_WhatItCannotFollow_IsNamedWithItsAddress") {
  CHECK(GraphOf({kExit, Branch(64, kTrue)}).error().message == "at 0x10: BRA 0x60 leaves the function");
  CHECK(
      GraphOf({kExit, Word{~0ull, ~0ull}}).error().message.find("at 0x10: the table has no row for the word 0xffff") ==
      0);
  const auto call = GraphOf({kExit, Word{0xfffffe600a007344, 0x023fea0003c3ffff}});
  CHECK(call.error().message == "at 0x10: CALL.REL.NOINC R10 -0x180 goes to places of a table that is not known");
  CHECK(GraphOf({kExit, WordOf("BRX")}).error().message.find("goes to places of a table") != std::string::npos);
}

}  // namespace
}  // namespace gridloom::machine
