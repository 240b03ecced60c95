// Who touched what too early: the spans and pages of hazards::SectorOrder against a list of all accesses, and copies of
// any size.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "sim/hardware/hazards/sector_order.h"

namespace gridloom::hardware::hazards {
namespace {

using timing::WorkId;

void Give(WorkClocks& clocks, WorkId id, std::uint32_t stream, const std::vector<WorkId>& after = {}) {
  const timing::MemoryUse use;
  clocks.Give({.id = id, .stream = stream, .after = after, .use = use});
}

/// By kind of hazard and sector: how often it was told.
using Told = std::map<std::pair<Kind, std::uint64_t>, int>;

/// Remembers every access.
class ListOfAll {
 public:
  explicit ListOfAll(const WorkClocks& clocks) : clocks_(clocks) {}
  void Access(WorkId work, std::uint64_t first, std::uint64_t count, bool writes, Told& told) {
    for (std::uint64_t sector = first; sector < first + count; ++sector) {
      if (IsBehind(work, sector, true)) ++told[{writes ? Kind::kWriteAfterWrite : Kind::kWriteAfterRead, sector}];
      if (writes && IsBehind(work, sector, false)) ++told[{Kind::kReadAfterWrite, sector}];
      users_[{sector, writes}].push_back(work);
    }
  }

 private:
  bool IsBehind(WorkId work, std::uint64_t sector, bool writes) {
    for (const WorkId user : users_[{sector, writes}]) {
      if (clocks_.Precedes(work, user)) return true;
    }
    return false;
  }
  const WorkClocks& clocks_;
  std::map<std::pair<std::uint64_t, bool>, std::vector<WorkId>> users_;
};

TEST_CASE("SectorOrder_PartsAndWholePages_AreAsInAListOfAllAccesses") {
  std::size_t hazards = 0, spans = 0, pages = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    WorkClocks clocks;
    SectorOrder order(clocks);
    ListOfAll list(clocks);
    std::vector<WorkId> open;
    for (WorkId work = 0; work < 12; ++work) {
      std::vector<WorkId> after;
      if (work > 0 && random() % 2 == 0) after.push_back(static_cast<WorkId>(random() % work));
      Give(clocks, work, random() % 4, after);
      open.push_back(work);
    }
    for (int step = 0; step < 60; ++step) {
      // Works that come behind nothing end now and then.
      for (std::size_t i = 0; i < open.size() && open.size() > 1; ++i) {
        if (clocks.IsEarly(open[i]) || random() % 16 != 0) continue;
        clocks.End(open[i]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      }
      const WorkId work = open[random() % open.size()];
      const bool writes = random() % 2 == 0;
      std::uint64_t first = random() % 1200, count = 1 + random() % (random() % 2 == 0 ? 4 : 900);
      if (random() % 3 == 0) first -= first % SectorOrder::kSectors;
      Told expected, told;
      list.Access(work, first, count, writes, expected);
      order.Access(work, first, count, writes, [&](std::uint64_t sector, std::uint64_t sectors, const Hazard& hazard) {
        for (std::uint64_t i = 0; i < sectors; ++i) ++told[{hazard.kind, sector + i}];
        CHECK(clocks.Precedes(work, hazard.later));
      });
      REQUIRE(told == expected);
      hazards += told.size();
    }
    spans += order.spans();
    pages += order.pages();
  }
  CHECK(hazards > 10'000);
  CHECK(spans > 100);
  CHECK(pages > 200);
}

TEST_CASE("SectorOrder_CopiesOfAnySize_TakeNoMemoryForWhatTheyMove") {
  WorkClocks clocks;
  SectorOrder order(clocks);
  for (WorkId work = 0; work < 4; ++work) Give(clocks, work, 0);
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 45) / 32;  // sectors of the longest copy that is read
  std::array<std::uint64_t, 3> told{};
  const auto count = [&](std::uint64_t, std::uint64_t sectors, const Hazard& hazard) {
    told[static_cast<std::size_t>(hazard.kind)] += sectors;
  };
  order.Access(3, 7, std::uint64_t{1} << 24, true, count);
  CHECK(order.pages() <= 2);
  order.Access(3, 7, kMost, true, count);
  order.Access(2, 1000, kMost, false, count);
  order.Access(2, 5000, 4, true, count);  // a kernel's access takes one page out of the middle
  order.Access(1, 7, kMost, true, count);
  CHECK(order.pages() <= 8);
  CHECK(order.spans() <= 10);
  CHECK(told[static_cast<std::size_t>(Kind::kWriteAfterRead)] == kMost - 993);
  CHECK(told[static_cast<std::size_t>(Kind::kReadAfterWrite)] == kMost - 993);
  CHECK(told[static_cast<std::size_t>(Kind::kWriteAfterWrite)] == 4 + kMost);
}

}  // namespace
}  // namespace gridloom::hardware::hazards
