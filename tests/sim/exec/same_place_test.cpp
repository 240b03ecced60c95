// Stores to places that the same thread has loaded from: what the load found out about them holds for the store, too.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

// Rounds of keys[places[round][thread]] += 5, for keys that are odd. Odd threads miss the first round.
const char* const kKernel = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 places, .param .u64 keys, .param .u32 threads, .param .u32 rounds)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<6>;
  ld.param.u64 %rd1, [places]; ld.param.u64 %rd2, [keys]; ld.param.u32 %r1, [threads]; ld.param.u32 %r2, [rounds];
  mov.u32 %r3, %tid.x;
  setp.ge.u32 %p1, %r3, %r1;
  @%p1 bra END;
  and.b32 %r4, %r3, 1;
ROUND:
  setp.ge.u32 %p2, %r4, %r2;
  @%p2 bra END;
  mad.lo.u32 %r5, %r4, %r1, %r3;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.u32 %r6, [%rd4];
  mul.wide.s32 %rd5, %r6, 4;
  add.u64 %rd6, %rd2, %rd5;
  ld.global.u32 %r7, [%rd6];
  and.b32 %r8, %r7, 1;
  setp.eq.u32 %p3, %r8, 0;
  @%p3 bra EVEN;
  add.u32 %r9, %r7, 5;
  st.global.u32 [%rd6], %r9;
EVEN:
  add.u32 %r4, %r4, 1;
  bra ROUND;
END:
  ret;
}
)";

}  // namespace

TEST_CASE("SamePlace_LoadedAndStored_InRowsOrNot") {
  const std::uint32_t threads = GENERATE(7u, 32u, 61u, 128u);
  const bool all_odd = GENERATE(false, true);
  constexpr std::uint32_t kRounds = 24, kKeys = 256;  // keys a round
  std::mt19937 random(5);
  std::vector<std::uint32_t> keys(kRounds * kKeys), places;
  for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(random()) | (all_odd ? 1u : 0u);
  // Rounds of places that are rows, rows from an odd place on, rows in the first half only, pairs swapped, and any
  // order.
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    std::vector<std::uint32_t> own(threads);
    std::iota(own.begin(), own.end(), round * kKeys + (round % 5 == 1 ? 13 : 0));
    if (round % 5 == 2) std::shuffle(own.begin() + threads / 2, own.end(), random);
    if (round % 5 == 3) std::ranges::for_each(own, [](std::uint32_t& place) { place ^= 1; });
    if (round % 5 == 4) std::shuffle(own.begin(), own.end(), random);
    places.insert(places.end(), own.begin(), own.end());
  }
  Executor executor;
  const std::uint64_t keys_at = executor.Upload(keys);
  const exec::LaunchFault fault =
      executor.Launch(kKernel, "add", {1, 1, 1}, {128, 1, 1},
                      ParamBlock().Add(executor.Upload(places)).Add(keys_at).Add(threads).Add(kRounds));
  INFO(threads << " threads, all keys odd " << all_odd << ": " << fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  std::vector<std::uint32_t> want = keys;
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    for (std::uint32_t round = thread & 1; round < kRounds; ++round) {
      std::uint32_t& key = want[places[round * threads + thread]];
      if (key & 1) key += 5;
    }
  }
  executor.Download(keys_at, keys);
  CHECK(keys == want);
}
