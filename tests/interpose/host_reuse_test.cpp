// Which copies touch the same memory of the host's.
#include "interpose/observe/host_reuse.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

using gridloom::session::HostReuse;
using Reuses = std::vector<gridloom::trace::HostAction::Reuse>;

TEST_CASE("HostReuse_MemoryThatNobodyHasTouched_HasNone") {
  HostReuse reuse;
  CHECK(reuse.Find({100, 50}).empty());
  reuse.Add({100, 50}, 1, true);
  reuse.Add({300, 0}, 2, true);
  CHECK(reuse.Find({0, 100}).empty());
  CHECK(reuse.Find({150, 1000}).empty());
  CHECK(reuse.Find({120, 0}).empty());
}

TEST_CASE("HostReuse_EarlierCopies_AreNamedWithWhereTheirMemoryBegins") {
  HostReuse reuse;
  reuse.Add({100, 100}, 1, true);
  reuse.Add({200, 100}, 2, true);
  CHECK(reuse.Find({100, 100}) == Reuses{{1, 0}});
  CHECK(reuse.Find({150, 100}) == Reuses{{1, -50}, {2, 50}});
  CHECK(reuse.Find({0, 1000}) == Reuses{{1, 100}, {2, 200}});
}

TEST_CASE("HostReuse_OneThatWaits_StandsForThoseBefore_WhereItTouchesTheSame") {
  HostReuse reuse;
  reuse.Add({100, 100}, 1, true);
  reuse.Add({120, 20}, 2, true);
  CHECK(reuse.Find({120, 20}) == Reuses{{2, 0}});
  CHECK(reuse.Find({100, 100}) == Reuses{{1, 0}, {2, 20}});
  reuse.Add({0, 1000}, 3, true);
  CHECK(reuse.Find({100, 100}) == Reuses{{3, -100}});
}

TEST_CASE("HostReuse_OneThatDoesNotWait_StandsBesideThem") {
  HostReuse reuse;
  reuse.Add({100, 100}, 1, true);
  reuse.Add({50, 300}, 2, false);
  CHECK(reuse.Find({50, 10}) == Reuses{{2, 0}});
  CHECK(reuse.Find({100, 10}) == Reuses{{1, 0}, {2, -50}});
  CHECK(reuse.Find({300, 10}) == Reuses{{2, -250}});
  for (std::uint64_t work = 3; work < 1000; ++work) reuse.Add({100, 100}, work, false);
  const Reuses last = reuse.Find({100, 100});
  CHECK((last.size() < 100 && last.back().work == 999));
}

TEST_CASE("HostReuse_MemoryThatIsNoMore_IsForgotten") {
  HostReuse reuse;
  reuse.Add({100, 100}, 1, true);
  reuse.Forget({150, 20});
  reuse.Forget({0, 10});
  CHECK(reuse.Find({150, 20}).empty());
  CHECK(reuse.Find({140, 20}) == Reuses{{1, -40}});
  CHECK(reuse.Find({160, 20}) == Reuses{{1, -60}});
  reuse.Forget({0, 1000});
  CHECK(reuse.Find({0, 1000}).empty());
}

TEST_CASE("HostReuse_RandomCopies_AreFoundAsByteByByte") {
  std::mt19937 random(1);
  HostReuse reuse;
  std::map<std::uint64_t, std::set<std::uint64_t>> touched;  // works by byte
  std::map<std::uint64_t, std::uint64_t> begins;
  for (std::uint64_t work = 1; work <= 2000; ++work) {
    const HostReuse::Memory memory = {1000 + random() % 200, random() % 50};
    std::set<std::uint64_t> wanted;
    for (std::uint64_t byte = memory.begin; byte < memory.begin + memory.bytes; ++byte)
      wanted.merge(std::set(touched[byte]));
    Reuses expected;
    for (const std::uint64_t earlier : wanted)
      expected.push_back({earlier, static_cast<std::int64_t>(begins[earlier] - memory.begin)});
    REQUIRE(reuse.Find(memory) == expected);
    const bool waits = random() % 3 != 0;
    reuse.Add(memory, work, waits);
    begins[work] = memory.begin;
    for (std::uint64_t byte = memory.begin; byte < memory.begin + memory.bytes; ++byte) {
      if (waits) touched[byte].clear();
      touched[byte].insert(work);
    }
  }
}
