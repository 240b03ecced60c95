// How units of a grid are dealt to threads: each is taken once, a thread's own in order.
#include "sim/exec/runtime/unit_shares.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace gridloom::exec {
namespace {

std::vector<UnitSpan> TakeAll(UnitShares& shares, unsigned thread, std::uint64_t most) {
  std::vector<UnitSpan> all;
  for (UnitSpan span; shares.Take(thread, most, span);) all.push_back(span);
  return all;
}

TEST_CASE("UnitShares_OneThreadTakesItsOwnInOrderAndThenFromTheEndsOfOthers") {
  UnitShares shares;
  CHECK_FALSE(shares.dealt());
  shares.Deal({10, 310}, 3);
  CHECK(shares.dealt());
  const std::vector<UnitSpan> all = TakeAll(shares, 1, 1000);
  std::uint64_t next = 110;  // the second of three parts of 100
  std::size_t i = 0;
  for (; next < 210; next = all[i++].end) REQUIRE(all[i].first == next);
  CHECK(next == 210u);
  std::uint64_t end = 310;  // the third one's
  for (; end > 210; end = all[i++].first) REQUIRE(all[i].end == end);
  for (end = 110; end > 10; end = all[i++].first) REQUIRE(all[i].end == end);
  CHECK(i == all.size());
}

TEST_CASE("UnitShares_PiecesShrinkAndKeepToTheLimit") {
  UnitShares shares;
  shares.Deal({0, 1000}, 1);
  UnitSpan span, before{0, 0};
  while (shares.Take(0, 50, span)) {
    CHECK(span.first == before.end);
    CHECK(span.end - span.first <= (before.end == 0 ? 50 : before.end - before.first));
    before = span;
  }
  CHECK(before.end == 1000u);
  CHECK(before.end - before.first == 1u);
}

TEST_CASE("UnitShares_FewerUnitsThanThreads") {
  UnitShares shares;
  shares.Deal({UINT32_MAX - 2u, UINT32_MAX}, 7);
  std::vector<int> taken(2);
  for (unsigned thread = 0; thread < 7; ++thread)
    for (const UnitSpan& span : TakeAll(shares, thread, 8))
      for (std::uint64_t unit = span.first; unit < span.end; ++unit) ++taken[unit - (UINT32_MAX - 2u)];
  CHECK(taken == std::vector<int>{1, 1});
}

TEST_CASE("UnitShares_ThreadsTakeEachUnitOnce") {
  constexpr unsigned kThreads = 4;
  for (std::uint64_t count : {1, 5, 64, 10'007}) {
    UnitShares shares;
    shares.Deal({0, count}, kThreads);
    std::vector<std::atomic<int>> taken(count);
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        for (const UnitSpan& span : TakeAll(shares, thread, 16))
          for (std::uint64_t unit = span.first; unit < span.end; ++unit) ++taken[unit];
      });
    for (std::thread& thread : threads) thread.join();
    for (std::uint64_t unit = 0; unit < count; ++unit) REQUIRE(taken[unit].load() == 1);
  }
}

}  // namespace
}  // namespace gridloom::exec
