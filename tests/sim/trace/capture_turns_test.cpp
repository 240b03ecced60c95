// Captured loops whose turns are equal: kept once, with a count.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <span>

#include "sim/trace/word_turns.h"
#include "tests/sim/trace/captured.h"
#include "tests/sim/trace/unrolled.h"

using namespace gridloom;
using test::Captured, test::Run, test::Unrolled;

namespace {

// Each round of a loop reads a place of its own thread over and over, as one that waits does: round r `turns` + r
// times. Odd lanes do not take part in the arm; the warps meet between the rounds.
const char* const kPolling = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry polling(.param .u64 in, .param .u32 rounds, .param .u32 turns)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [in];
  ld.param.u32 %r2, [rounds];
  ld.param.u32 %r3, [turns];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  and.b32 %r4, %r1, 1;
  setp.eq.u32 %p2, %r4, 0;
  mov.u32 %r5, 0;
ROUND:
  add.u32 %r6, %r3, %r5;
  mov.u32 %r7, 0;
TURN:
  ld.volatile.global.u32 %r8, [%rd3];
  @!%p2 bra BEHIND;
  ld.volatile.global.u32 %r9, [%rd3+1024];
  add.u32 %r8, %r8, %r9;
BEHIND:
  add.u32 %r7, %r7, 1;
  add.u32 %r7, %r7, %r8;
  setp.lt.u32 %p1, %r7, %r6;
  @%p1 bra TURN;
  add.u64 %rd3, %rd3, 128;
  bar.sync 0;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p1, %r5, %r2;
  @%p1 bra ROUND;
  ret;
}
)";

Captured Poll(std::uint32_t rounds, std::uint32_t turns, std::uint32_t threads) {
  test::Executor executor;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(4096));
  test::ParamBlock block;
  block.Add(in).Add(rounds).Add(turns);
  exec::LaunchParams launch;
  launch.grid = {2, 1, 1};
  launch.block = {threads, 1, 1};
  launch.params = block.bytes();
  return Run(executor, kPolling, "polling", launch);
}

std::uint64_t VisitsMade(const trace::CtaTrace& cta) {
  std::uint64_t made = cta.visits.size();
  for (const trace::Repeat& repeat : cta.repeats) made += repeat.more * repeat.visit_count;
  return made;
}

}  // namespace

TEST_CASE("Capture_EqualTurns_AreKeptOnce") {
  // So few turns that all of them are kept tell what one of a thousand times as many is.
  const Captured few = Poll(2, 20, 48), many = Poll(2, 50'000, 48);
  REQUIRE(many.dropped == 0);
  for (const auto& [number, cta] : many.ctas) {
    INFO("CTA " << number);
    const trace::CtaTrace& small = few.ctas.at(number);
    CHECK(small.repeats.empty());
    CHECK(cta.repeats.size() == 2 * cta.warps.size());
    CHECK(cta.visits.size() < 200'000);
    REQUIRE(small.warps.size() == cta.warps.size());
    const trace::CtaTrace all = Unrolled(cta);
    CHECK(all.visits.size() == VisitsMade(cta));
    CHECK(trace::InstructionCount(many.table.code, cta) == trace::InstructionCount(many.table.code, all));
    CHECK(trace::ValidateCta(many.table.code, {.ctas = 2, .threads_per_cta = 48}, all).ok());
    for (std::size_t w = 0; w < cta.warps.size(); ++w) {
      // Each turn adds as many visits: the paths differ by whole turns.
      const std::uint32_t visits = small.warps[w].visit_count, more = all.warps[w].visit_count - visits;
      const std::uint32_t turns = 2 * (50'000 - 20);
      REQUIRE(more % turns == 0);
      CHECK(more / turns >= 2);
      // It begins and ends as the small path does, and in between each visit is that a turn before it, but for where
      // the round changes.
      const std::uint32_t turn = more / turns, most_others = visits - 41 * turn + 4 * turn;
      const std::span of_small(small.visits.data() + small.warps[w].first_visit, visits);
      const std::span of_all(all.visits.data() + all.warps[w].first_visit, all.warps[w].visit_count);
      const auto same = [](const trace::BlockVisit& a, const trace::BlockVisit& b) {
        return a.block == b.block && a.mask == b.mask;
      };
      CHECK(std::ranges::equal(of_small.first(20 * turn), of_all.first(20 * turn), same));
      CHECK(std::ranges::equal(of_small.last(20 * turn), of_all.last(20 * turn), same));
      std::uint32_t others = 0;
      for (std::size_t v = turn; v < of_all.size(); ++v) others += same(of_all[v], of_all[v - turn]) ? 0 : 1;
      CHECK(others <= most_others);
      CHECK(all.accesses[all.warps[w].first_access].base == small.accesses[small.warps[w].first_access].base);
      CHECK(all.accesses[all.warps[w].first_access + all.warps[w].access_count - 1].base ==
            small.accesses[small.warps[w].first_access + small.warps[w].access_count - 1].base);
    }
  }
}

TEST_CASE("TurnFinder_RandomTurns_AreFoundAndLoseNothing") {
  std::mt19937_64 random(5);
  for (unsigned round = 0; round < 200; ++round) {
    // Parts of random words, some of them turns.
    std::vector<std::uint64_t> words;
    for (unsigned part = 0; part < 6; ++part) {
      const std::size_t period = 1 + random() % 200, turns = random() % 3 != 0 ? 1 : random() % 4000;
      std::vector<std::uint64_t> turn(period);
      for (std::uint64_t& word : turn) word = random() % 3;
      for (std::size_t i = 0; i < turns; ++i) words.insert(words.end(), turn.begin(), turn.end());
      words.resize(words.size() - random() % period);
    }
    trace::TurnFinder finder;
    std::vector<std::uint64_t> kept;
    const auto keep = [&](std::span<const std::uint64_t> more) { kept.insert(kept.end(), more.begin(), more.end()); };
    const auto end_turns = [&] {
      const auto rest = finder.End(kept);
      keep(std::vector<std::uint64_t>(rest.begin(), rest.end()));
    };
    for (std::size_t at = 0; at < words.size();) {
      std::span<const std::uint64_t> next(words.data() + at,
                                          std::min<std::size_t>(1 + random() % 900, words.size() - at));
      at += next.size();
      if (finder.open()) {
        next = next.subspan(finder.Continue(kept, next));
        if (next.empty()) continue;
        end_turns();
      }
      keep(next);
      kept.resize(finder.Look(kept));
    }
    if (finder.open()) end_turns();
    std::vector<std::uint64_t> all;
    std::size_t from = 0;
    for (const trace::WordTurns& turns : finder.turns()) {
      const std::size_t end = turns.at + trace::WordTurns::kKeptTurns * turns.period;
      REQUIRE(turns.at >= from);
      REQUIRE(end <= kept.size());
      all.insert(all.end(), kept.begin() + static_cast<std::ptrdiff_t>(from),
                 kept.begin() + static_cast<std::ptrdiff_t>(end));
      for (std::uint64_t i = 0; i < turns.more; ++i)
        all.insert(all.end(), kept.begin() + static_cast<std::ptrdiff_t>(turns.at),
                   kept.begin() + static_cast<std::ptrdiff_t>(turns.at + turns.period));
      from = end;
    }
    all.insert(all.end(), kept.begin() + static_cast<std::ptrdiff_t>(from), kept.end());
    CHECK((all == words));
  }
}
