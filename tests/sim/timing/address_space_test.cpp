// Where the memory of several processes lies: nothing is shared, nothing is lost, a process alone is as its trace says.
#include "sim/timing/memory/address_space.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "scheduler/policy/builtin.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

constexpr std::uint64_t kPage = 128 << 10, kPageLines = kPage / 128;

TEST_CASE("AddressSpace_0_LiesAtItsVirtualAddresses") {
  const AddressSpace space(0, 7, kPage);
  for (const std::uint64_t line : {std::uint64_t{0}, std::uint64_t{12345}, (std::uint64_t{1} << 40) - 1})
    CHECK(space.PhysicalLine(line) == line);
}

TEST_CASE("AddressSpace_IsOneToOne_KeepsPagesWhole_AndSharesHardlyAny") {
  std::mt19937_64 random(1);
  std::set<std::uint64_t> pages;
  for (int i = 0; i < 3000; ++i) pages.insert((random() & ((std::uint64_t{1} << 40) - 1)) / kPageLines);
  for (std::uint64_t page = 0; page < 3000; ++page) pages.insert(page);  // neighbours, too
  std::set<std::uint64_t> of_all(pages);                                 // pages of space 0
  for (const std::uint32_t number : {1u, 2u, 9u}) {
    const AddressSpace space(number, 1, kPage);
    std::set<std::uint64_t> taken;
    for (const std::uint64_t page : pages) {
      const std::uint64_t first = space.PhysicalLine(page * kPageLines);
      REQUIRE(first % kPageLines == 0);
      REQUIRE(space.PhysicalLine(page * kPageLines + 77) == first + 77);
      REQUIRE(first < std::uint64_t{1} << 40);
      REQUIRE(taken.insert(first / kPageLines).second);
    }
    of_all.merge(taken);
    CHECK(taken.size() <= 1);  // left: what others have, too; 0.2 expected
  }
}

TEST_CASE("AddressSpace_PagesFallOnAllColours_AndOtherwiseInEachLayout") {
  constexpr std::uint64_t kColours = 64;
  const AddressSpace one(1, 1, kPage), other(1, 2, kPage), again(1, 1, kPage);
  std::vector<int> uses(kColours);
  std::size_t moved = 0;
  for (std::uint64_t page = 0; page < 64 * kColours; ++page) {
    const std::uint64_t line = page * kPageLines, physical = one.PhysicalLine(line);
    ++uses[physical / kPageLines % kColours];
    moved += physical != other.PhysicalLine(line) ? 1 : 0;
    REQUIRE(again.PhysicalLine(line) == physical);
  }
  // 64 pages a colour, give or take five standard deviations.
  for (const int count : uses) CHECK((count > 24 && count < 104));
  CHECK(moved > 63 * kColours);
}

/// Every warp reads 64 lines of its own; all launches read the same addresses.
std::shared_ptr<trace::CtaSource> Reader() {
  CodeBuilder code("reader");
  code.Block();
  code.Load(trace::Space::kGlobal, 1);
  code.Op(trace::OpClass::kInt, {2}, {1});
  CtaBuilder cta;
  for (std::uint64_t warp = 0; warp < 8; ++warp) {
    cta.Warp();
    cta.Visit(0, kAllLanes, 64);
    for (std::uint64_t i = 0; i < 64; ++i) cta.Access((warp * 64 + i) * 128, 4);
  }
  return SameCtas(code.code(), {.ctas = 1, .threads_per_cta = 256, .registers_per_thread = 16, .shared_bytes = 0},
                  cta.Finish());
}

/// Bytes that DRAM reads for two launches, one after the other.
std::uint64_t ReadFor(std::uint32_t first, std::uint32_t second, bool plain) {
  const auto policy = policy::MakePolicy("leftover").value();
  EngineOptions options;
  options.layout = 3;
  options.plain = plain;
  auto engine = Engine::Create(TestDevice("gtx680"), *policy, options);
  REQUIRE(engine.ok());
  for (const std::uint32_t space : {first, second})
    REQUIRE((*engine)->Add(KernelWork{.order = {}, .source = Reader(), .address_space = space}).ok());
  REQUIRE((*engine)->Run());
  return (*engine)->counters().memory.dram_read_bytes;
}

TEST_CASE("Processes_WithArraysAtEqualAddresses_DoNotFindEachOthersLines") {
  constexpr std::uint64_t kBytes = 8 * 64 * 128;
  for (const bool plain : {false, true}) {
    CHECK(ReadFor(0, 0, plain) == kBytes);  // the second launch of a process hits in L2
    CHECK(ReadFor(5, 5, plain) == kBytes);
    CHECK(ReadFor(5, 6, plain) == 2 * kBytes);
    CHECK(ReadFor(0, 5, plain) == 2 * kBytes);
  }
}

}  // namespace
}  // namespace gridloom::timing
