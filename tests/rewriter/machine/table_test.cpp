// The table by itself: its text is right, each row can be reached, and what is made from it agrees with itself.
#include "rewriter/machine/table.h"

#include <bit>
#include <catch2/catch.hpp>
#include <random>

#include "rewriter/machine/instruction.h"
#include "rewriter/machine/print.h"

namespace gridloom::machine {
namespace {

std::uint64_t RandomValue(const Field& field, std::mt19937_64& random) {
  if (field.only) return *field.only;
  if (field.power_of_two) return std::uint64_t{1} << random() % field.bits();
  for (;;) {
    const std::uint64_t value = field.names.empty() ? random() : random() % field.names.size();
    const std::uint64_t cut = field.bits() >= 64 ? value : value & ((std::uint64_t{1} << field.bits()) - 1);
    if (field.Allows(cut)) return cut;
  }
}

Instruction RandomInstruction(const Format& format, std::mt19937_64& random) {
  Instruction instruction{.format = &format};
  for (const Field& field : format.fields) instruction.values.push_back(RandomValue(field, random));
  instruction.guard = static_cast<std::uint8_t>(random() % 8);
  instruction.guard_negated = random() % 2 != 0;
  const auto barrier = [&] { return static_cast<std::uint8_t>(random() % 7 == 6 ? kNoBarrier : random() % 6); };
  instruction.control = {static_cast<std::uint8_t>(random() % 16),
                         random() % 2 != 0,
                         barrier(),
                         barrier(),
                         static_cast<std::uint8_t>(random() % 64),
                         static_cast<std::uint8_t>(random() % 16)};
  return instruction;
}

TEST_CASE("Table_EveryRow_IsWellFormed") {
  for (const std::string& error : TableErrors()) FAIL_CHECK(error);
  CHECK(AllFormats().size() > 500);
}

TEST_CASE("Table_EveryFormat_IsReachedByItsWords") {
  std::mt19937_64 random(1);
  for (const Format& format : AllFormats()) {
    for (const unsigned sm : KnownArchitectures()) {
      if (sm < format.first_sm || sm > format.last_sm) continue;
      bool reached = false;
      for (int round = 0; round < 64 && !reached; ++round) {
        const auto decoded = Decode(Encode(RandomInstruction(format, random)), sm);
        reached = decoded && decoded->format == &format;
      }
      INFO(format.name << ", opcode " << format.opcode << ", sm_" << sm);
      CHECK(reached);
    }
  }
}

TEST_CASE("Encode_RandomLegalInstructions_DecodeToTheSameWord") {
  std::mt19937_64 random(2);
  for (const Format& format : AllFormats()) {
    for (int round = 0; round < 50; ++round) {
      const Instruction made = RandomInstruction(format, random);
      REQUIRE(Verify(made).ok());
      const Word word = Encode(made);
      const auto decoded = Decode(word, format.first_sm);
      INFO(format.name << " " << Hex(word));
      REQUIRE(decoded);
      CHECK(Encode(*decoded) == word);
      CHECK_FALSE(Text(*decoded, 0).empty());
      if (decoded->format != &format) continue;  // a row before it has a name of its own for such words
      CHECK(decoded->values == made.values);
      CHECK(decoded->control == made.control);
      CHECK(decoded->guard == made.guard);
    }
  }
}

TEST_CASE("Verify_ValueThatDoesNotFit_IsNamed") {
  std::mt19937_64 random(3);
  for (const Format& format : AllFormats()) {
    for (std::size_t field = 0; field < format.fields.size(); ++field) {
      Instruction made = RandomInstruction(format, random);
      made.values[field] = ~std::uint64_t{0};
      const Status status = Verify(made);
      INFO(format.name);
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().message.find(std::string(format.name)) == 0);
    }
  }
}

TEST_CASE("Verify_ScoreboardSix_IsNamed") {
  std::mt19937_64 random(4);
  Instruction made = RandomInstruction(AllFormats().front(), random);
  made.control.write_barrier = 6;
  CHECK_FALSE(Verify(made).ok());
}

TEST_CASE("Decode_BitThatNoFieldHas_IsUnknown") {
  std::mt19937_64 random(5);
  for (const Format& format : AllFormats()) {
    const Word word = Encode(RandomInstruction(format, random));
    for (unsigned bit = 12; bit < 105; ++bit) {
      if (format.mask.Get(bit, 1) == 0) continue;
      Word changed = word;
      changed.Set(bit, 1, word.Get(bit, 1) ^ 1);
      const auto decoded = Decode(changed, format.first_sm);
      if (decoded) CHECK(decoded->format != &format);
      if (decoded) CHECK(Encode(*decoded) == changed);
    }
  }
}

TEST_CASE("Decode_ArchitectureWithoutRows_IsUnknown") {
  CHECK_FALSE(IsKnownArchitecture(70));
  CHECK_FALSE(IsKnownArchitecture(100));
  CHECK_FALSE(Decode(Word{}, 100));
}

TEST_CASE("ParseRow_BrokenText_SaysWhere") {
  const auto error = [](std::string_view modifiers, std::string_view operands, std::string_view rest) {
    const auto format = ParseRow({"TEST", 0x10, "1", "75-90", modifiers, operands, rest}, 1);
    return format.ok() ? std::string() : format.error().message;
  };
  CHECK(error("", ">R@16 A W", "").empty());
  CHECK(error("", ">R@16 R@20", "").find("bit 20 has two uses") != std::string::npos);
  CHECK(error(".X@74 @74(.A,.B)", "", "").find("bit 74 has two uses") != std::string::npos);
  CHECK(error("@74(.A,.B,.C)", "", "").find("more names than values") != std::string::npos);
  CHECK(error("@74%nonsense", "", "").find("no shared names nonsense") != std::string::npos);
  CHECK(error("", "Q@16", "").find("no operand Q") != std::string::npos);
  CHECK(error("", "[R@24", "").find("a bracket has no end") != std::string::npos);
  CHECK(error("", "", "?16:8").find("of the rest only") != std::string::npos);
}

}  // namespace
}  // namespace gridloom::machine
