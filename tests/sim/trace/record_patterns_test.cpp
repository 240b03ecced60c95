// Patterns of lanes that only the run tells (sim/exec/runtime/record_patterns.h).
#include "sim/exec/runtime/record_patterns.h"

#include <array>
#include <catch2/catch.hpp>

using namespace gridloom;

TEST_CASE("RecordPatterns_LanesThatLieAlike_BecomeShortRecords") {
  using exec::RecordHeader, exec::RecordKind;
  exec::RecordPatterns patterns;
  patterns.Reset(9);
  // The group of one access, and its record: of all lanes, two words less than here.
  const struct {
    exec::RecordGroup group;
    exec::RecordAccess access;
    exec::RecordSlot slot;
  } code{.group = {.access_count = 1, .slot_count = 1},
         .access = {.header = RecordHeader{.kind = RecordKind::kLanes, .bytes = 4, .instruction = 7}.Pack()},
         .slot = {.form = exec::RecordSlot::kFound}};
  std::array<std::uint64_t, 1 + exec::RecordSlot::kMaxWords> record{reinterpret_cast<std::uint64_t>(&code)};
  std::uint64_t* const slot = record.data() + 1;
  // Two rows of 16 words, so far apart; lanes that are off hold 0.
  const auto write = [&](std::uint64_t base, std::uint64_t pitch, std::uint32_t mask) {
    slot[0] = 0;
    for (std::uint64_t lane = 0; lane < 32; ++lane)
      slot[1 + lane] = mask >> lane & 1 ? base + lane % 16 * 4 + lane / 16 * pitch : 0;
  };
  const auto learn = [&](exec::RecordSite& site, std::uint32_t mask) {
    return patterns.Learn(site, mask, slot) - slot;
  };
  exec::RecordSite &site = patterns.sites()[7], &other = patterns.sites()[8];
  const std::int64_t* const nothing = site.pattern;
  write(5000, 640, 0x00ff00f0u);  // nothing is known yet, and lanes that are off cannot tell
  CHECK((learn(site, 0x00ff00f0u) == exec::RecordSlot::kMaxWords && site.pattern == nothing));
  write(1000, 640, ~0u);
  REQUIRE(learn(site, ~0u) == 2);
  exec::RecordReader reader(std::span<const std::uint64_t>(record.data(), 3));
  REQUIRE(reader.Next());
  CHECK((reader.header().kind == RecordKind::kPattern && reader.header().mask == ~0u &&
         reader.header().instruction == 7));
  CHECK((reader.pattern() == site.pattern && reader.addresses()[17] == 1000 + 4 + 640));
  CHECK((!reader.in_group() && !reader.Next()));
  // Another site, other lanes, the same pattern.
  write(9000, 640, 0x00ff00f0u);
  REQUIRE(learn(other, 0x00ff00f0u) == 2);
  CHECK((other.pattern == site.pattern && slot[1] == 9000));
  // Lanes that lie in another way each time are given up.
  std::uint64_t pitch = 1000;
  while (site.tries > 0) {
    write(1000, ++pitch, ~0u);
    learn(site, ~0u);
    REQUIRE(pitch < 2000);
  }
  CHECK(pitch < 1020);
}
