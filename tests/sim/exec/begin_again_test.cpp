// Grids whose first CTAs are being interpreted when machine code comes: their stores are undone and they begin again,
// if nobody can have seen anything of them.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sim/exec/runtime/interpreter/undo_log.h"
#include "tests/sim/exec/tiers_fixture.h"

namespace gridloom::test {
namespace {

using namespace exec;

/// Each round reads what the round before has stored in the thread's word of `out`, and stores it as a word, as
/// halfwords where the lane is odd, and as a byte. `also` is done in each round, `after` in the end; %rd3 is the word's
/// address, %r6 what it holds.
std::string InPlaceKernel(const std::string& also = "", const std::string& after = "") {
  const std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 rounds)
{
  .shared .u32 count;
  .shared .b32 words[96];
  .local .b32 mine[4];
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b16 %h<2>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  and.b32 %r7, %r4, 1;
  setp.ne.u32 %p3, %r7, 0;
  cvt.rn.f32.u32 %f1, %r5;
LOOP:
  ld.global.u32 %r6, [%rd3];
)";
  return text + MixedSteps(400) + R"(
  st.global.u32 [%rd3], %r6;
  cvt.u16.u32 %h1, %r6;
  @%p3 st.global.u16 [%rd3+2], %h1;
  and.b32 %r8, %r1, 3;
  cvt.u64.u32 %rd4, %r8;
  add.u64 %rd5, %rd3, %rd4;
  st.global.u8 [%rd5], %r1;
)" + also +
         R"(
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra LOOP;
)" + after +
         "  ret;\n}\n";
}

constexpr std::uint32_t kInitial = 0x9e3779b1;

/// Runs a grid of few CTAs for as long as it takes until machine code comes while they run. With what must not begin
/// again: once.
Outcome RunUntilItComes(const std::string& ptx, bool begins_again, std::uint32_t& rounds,
                        MemoryKind kind = MemoryKind::kDevice, const std::function<void(Tiers&)>& prepare = {}) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  for (rounds = 3000;; rounds *= 2) {
    const Folder folder;
    Tiers tiers("on", folder.path());
    tiers.array_kind = kind;
    if (prepare) prepare(tiers);
    outcome = tiers.Run(ptx, 3, rounds, false, kInitial);
    CHECK(tiers.said.empty());
    if (outcome.stats.begun_again_ctas != 0 || (!begins_again && outcome.stats.interpreted_ctas < 3)) return outcome;
    if (rounds >= 96'000 || std::chrono::steady_clock::now() - start > std::chrono::seconds(40)) return outcome;
  }
}

[[maybe_unused]] void CheckBeginsAgain(const std::string& ptx) {
  std::uint32_t rounds = 0;
  const Outcome outcome = RunUntilItComes(ptx, true, rounds);
  INFO(rounds << " rounds, of 3 CTAs interpreted: " << outcome.stats.interpreted_ctas);
  if (outcome.stats.begun_again_ctas == 0 && outcome.stats.interpreted_ctas == 3) {
    // On a machine that interprets fast and compiles slowly.
    WARN("skipped: machine code did not come before the last CTA had ended, in " << rounds << " rounds");
    return;
  }
  CHECK(outcome.stats.begun_again_ctas > 0);
  CHECK(outcome.stats.interpreted_ctas == 0);
  CHECK(Same(outcome.values, Tiers("off").Run(ptx, 3, rounds, false, kInitial).values));
}

void CheckGoesOn(const std::string& ptx, MemoryKind kind = MemoryKind::kDevice) {
  std::uint32_t rounds = 0;
  const Outcome outcome = RunUntilItComes(ptx, false, rounds, kind);
  INFO(rounds << " rounds");
  CHECK(outcome.stats.begun_again_ctas == 0);
  CHECK(outcome.stats.interpreted_ctas > 0);
  CHECK(Same(outcome.values, Tiers("off").Run(ptx, 3, rounds, false, kInitial).values));
}

}  // namespace

#if !defined(__SANITIZE_THREAD__)  // there all stores are left to a helper, which keeps nothing
TEST_CASE("BeginAgain_KernelsInPlace_SameBits") {
  CheckBeginsAgain(InPlaceKernel());
  // All warps of a CTA at a barrier in each round, with atomics that only the CTA sees.
  CheckBeginsAgain(
      InPlaceKernel("  bar.sync 0;\n  mov.u32 %r9, count;\n  atom.shared.add.u32 %r10, [%r9], 1;\n  bar.sync 0;\n"));
}

TEST_CASE("BeginAgain_GenericStoresToSharedAndLocalMemory_AreTheCtasOwn") {
  CheckBeginsAgain(InPlaceKernel(R"(
  mul.wide.u32 %rd4, %r4, 4;
  mov.u64 %rd5, words;
  cvta.shared.u64 %rd5, %rd5;
  add.u64 %rd5, %rd5, %rd4;
  st.u32 [%rd5], %r6;
  mov.u64 %rd6, mine;
  cvta.local.u64 %rd6, %rd6;
  and.b32 %r8, %r6, 3;
  mul.wide.u32 %rd4, %r8, 4;
  add.u64 %rd6, %rd6, %rd4;
  st.u32 [%rd6], %r6;
  ld.u32 %r9, [%rd5];
  ld.u32 %r10, [%rd6];
  add.u32 %r9, %r9, %r10;
  st.u32 [%rd3], %r9;
)"));
}
#endif

TEST_CASE("BeginAgain_WhatOthersMaySee_IsInterpretedToItsEnd") {
  CheckGoesOn(InPlaceKernel("", "  atom.global.add.u32 %r10, [%rd3], 1;\n"));
  CheckGoesOn(InPlaceKernel("", "  membar.sys;\n  st.global.u32 [%rd3], %r6;\n"));
  CheckGoesOn(InPlaceKernel(
      "", "  ld.volatile.global.u32 %r10, [%rd3];\n  add.u32 %r10, %r10, 1;\n  st.global.u32 [%rd3], %r10;\n"));
}

TEST_CASE("BeginAgain_MemoryThatTheHostSees_IsNeverUndone") {
  CheckGoesOn(InPlaceKernel(), MemoryKind::kPinned);
  CheckGoesOn(InPlaceKernel(), MemoryKind::kManaged);
}

TEST_CASE("UnseenMemory_IsWhatOnlyTheDeviceSees") {
  auto memory = std::move(*DeviceMemory::Create({.range_bytes = std::uint64_t{1} << 32}));
  UnseenMemory unseen;
  for (const MemoryKind kind :
       {MemoryKind::kDevice, MemoryKind::kPool, MemoryKind::kModule, MemoryKind::kPinned, MemoryKind::kManaged}) {
    const bool seen = kind == MemoryKind::kPinned || kind == MemoryKind::kManaged;
    const std::uint64_t base = memory->Allocate(1000, 256, kind);
    INFO("kind " << static_cast<int>(kind));
    CHECK(unseen.Contains(*memory, base, 1000) == !seen);
    CHECK(unseen.Contains(*memory, base + 999, 1) == !seen);
    CHECK(!unseen.Contains(*memory, base + 999, 2));
    CHECK(!unseen.Contains(*memory, base - 1, 2));
    CHECK(!unseen.Contains(*memory, base, ~std::uint64_t{0}));
  }
  alignas(4096) static std::array<std::byte, 4096> host;
  REQUIRE(memory->RegisterHost(host.data(), host.size(), false));
  CHECK(!unseen.Contains(*memory, reinterpret_cast<std::uint64_t>(host.data()), 4));
  REQUIRE(memory->UnregisterHost(host.data()));
  // A handle of mapped memory may go to another process at any time.
  const std::uint64_t reserved = memory->Reserve(1 << 21, 1 << 21, 0), physical = memory->CreatePhysical(1 << 21);
  REQUIRE(memory->Map(reserved, 1 << 21, physical, 0));
  REQUIRE(memory->Protect(reserved, 1 << 21, true, true));
  CHECK(!unseen.Contains(*memory, reserved, 4));
}

TEST_CASE("Onlookers_OneThatEnters_ExcludesBeginningAgain") {
  Onlookers onlookers;
  const std::uint64_t before = onlookers.entered();
  onlookers.Enter();
  CHECK(!onlookers.Suspend(onlookers.entered()));  // it is there
  onlookers.Leave();
  CHECK(!onlookers.Suspend(before));  // it was there
  REQUIRE(onlookers.Suspend(onlookers.entered()));
  std::atomic<bool> inside{false}, resumed{false}, early{false};
  std::thread one([&] {
    onlookers.Enter();
    early = !resumed;
    inside = true;
    onlookers.Leave();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(!inside);
  resumed = true;
  onlookers.Resume();
  one.join();
  CHECK(!early);
}

TEST_CASE("UndoLog_StoresOfSeveralWorkersToTheSamePlaces_AreUndone") {
  constexpr std::size_t kWords = 300;
#if defined(__SANITIZE_THREAD__)
  constexpr unsigned kWorkers = 1;  // they race, as kernels may
#else
  constexpr unsigned kWorkers = 3;
#endif
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    alignas(64) static std::array<std::uint8_t, kWords * 4> memory;
    for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(random());
    const auto before = memory;
    UndoLog log;
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        std::mt19937 mine(100 * seed + worker);
        UndoLog::Part part;
        for (unsigned i = 0; i < 3000; ++i) {
          const std::size_t word = mine() % kWords;
          const std::uint32_t value = mine();
          std::uint8_t* const at = memory.data() + word * 4;
          switch (mine() % 3) {
            case 0:
              wrong += !log.Keep(part, reinterpret_cast<std::uint64_t>(at), 4);
              __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), value, __ATOMIC_RELAXED);
              break;
            case 1:
              wrong += !log.Keep(part, reinterpret_cast<std::uint64_t>(at + value % 4), 1);
              __atomic_store_n(at + value % 4, static_cast<std::uint8_t>(value), __ATOMIC_RELAXED);
              break;
            default: {
              const std::size_t count = std::min<std::size_t>(32, kWords - word);
              wrong += !log.Keep(part, reinterpret_cast<std::uint64_t>(at), static_cast<std::uint32_t>(count) * 4);
              for (std::size_t k = 0; k < count; ++k)
                __atomic_store_n(reinterpret_cast<std::uint32_t*>(at) + k, value + static_cast<std::uint32_t>(k),
                                 __ATOMIC_RELAXED);
            }
          }
        }
        log.Take(part);
        CHECK(part.empty());
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(memory != before);
    CHECK(wrong == 0);
    CHECK(log.Decide());
    log.Undo();
    CHECK(memory == before);
  }
}

TEST_CASE("UndoLog_MoreThanItKeeps_IsBroken") {
  std::vector<std::uint32_t> memory(16u << 20);
  UndoLog log;
  UndoLog::Part part;
  std::size_t kept = 0;
  while (!log.broken() && (kept + 1) * 256 <= memory.size())
    static_cast<void>(log.Keep(part, reinterpret_cast<std::uint64_t>(&memory[256 * kept++]), 1024));
  CHECK(log.broken());
  CHECK(kept > 20'000);
  CHECK(kept < 40'000);
}

TEST_CASE("UndoLog_BrokenOrDecided_WhicheverComesFirst") {
  std::uint32_t word = 7;
  const auto address = reinterpret_cast<std::uint64_t>(&word);
  UndoLog::Part part;
  {
    UndoLog log;
    CHECK(log.Keep(part, address, 4));
    word = 8;
    CHECK(log.Decide());
    CHECK(!log.Break());  // whoever wants to do more must not
    CHECK(!log.Keep(part, address, 4));
    CHECK(log.decided());
    log.Take(part);
    log.Undo();
    CHECK(word == 7);
  }
  UndoLog log;
  CHECK(log.Break());
  CHECK(log.Break());
  CHECK(!log.Decide());
  CHECK(log.Keep(part, address, 4));
  CHECK(part.empty());
}

}  // namespace gridloom::test
