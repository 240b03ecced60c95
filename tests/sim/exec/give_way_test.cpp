// Races that a GPU's timing hides (sim/exec/compiler/give_way.h): what all warps read behind a barrier is there until
// they have.
#include <catch2/catch.hpp>

#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {
namespace {

constexpr std::uint32_t kWaitingRounds = 5, kCtas = 3;

/// How a block sums up without a second barrier. Each leaves the sum of the warps' sums (%sum) in %total.
struct Reduction {
  const char* name;
  const char* text;
};

const char* const kPartial = "  @%first st.shared.u32 [%own], %sum;\n";
const char* const kByFirstWarp =
    "  @%first st.shared.u32 [%own], %sum;\n  bar.sync 0;\n  setp.gt.u32 %p, %warp, 0;\n  @%p bra SUMMED;\n"
    "  mov.u32 %part, 0;\n  setp.lt.u32 %p, %lane, %warps;\n  shl.b32 %at, %lane, 2;\n  add.u32 %at, %at, %slots;\n"
    "  @%p ld.shared.u32 %part, [%at];\n  redux.sync.add.u32 %part, %part, -1;\n  @%first st.shared.u32 [slots], "
    "%part;\n"
    "SUMMED:\n  bar.sync 0;\n  ld.shared.u32 %total, [slots];\n";

const Reduction kReductions[] = {
    {"the first warp sums up, in place of the first slot", kByFirstWarp},
    {"each thread sums up all slots",
     "  @%first st.shared.u32 [%own], %sum;\n  bar.sync 0;\n  mov.u32 %total, 0;\n  mov.u32 %i, 0;\n  mov.u32 %at, "
     "%slots;\n"
     "SLOT:\n  ld.shared.u32 %part, [%at];\n  add.u32 %total, %total, %part;\n  add.u32 %at, %at, 4;\n  add.u32 %i, "
     "%i, 1;\n"
     "  setp.lt.u32 %p, %i, %warps;\n  @%p bra SLOT;\n"},
    {"each warp sums up all slots, one a lane",
     "  @%first st.shared.u32 [%own], %sum;\n  bar.sync 0;\n  mov.u32 %part, 0;\n  setp.lt.u32 %p, %lane, %warps;\n"
     "  shl.b32 %at, %lane, 2;\n  add.u32 %at, %at, %slots;\n  @%p ld.shared.u32 %part, [%at];\n"
     "  redux.sync.add.u32 %total, %part, -1;\n"},
    {"one thread writes in a branch of its own, behind a loop that lanes leave one by one",
     "  mov.u32 %i, 0;\nTRIP:\n  add.u32 %i, %i, 1;\n  setp.le.u32 %p, %i, %lane;\n  @%p bra TRIP;\n  setp.ne.u32 %p, "
     "%i, 1;\n"
     "  @%p bra WRITTEN;\n  st.shared.u32 [%own], %sum;\nWRITTEN:\n  bar.warp.sync -1;\n  bar.sync 0;\n"
     "  setp.gt.u32 %p, %thread, 0;\n  @%p bra SUMMED;\n  mov.u32 %part, 0;\n  mov.u32 %i, 0;\n  mov.u32 %at, %slots;\n"
     "SLOT:\n  ld.shared.u32 %k, [%at];\n  add.u32 %part, %part, %k;\n  add.u32 %at, %at, 4;\n  add.u32 %i, %i, 1;\n"
     "  setp.lt.u32 %p, %i, %warps;\n  @%p bra SLOT;\n  st.shared.u32 [slots], %part;\n"
     "SUMMED:\n  bar.warp.sync -1;\n  bar.sync 0;\n  ld.shared.u32 %total, [slots];\n"},
    {"atomically, cleared by the first thread",
     "  setp.eq.u32 %p, %thread, 0;\n  @%p st.shared.u32 [slots], 0;\n  bar.sync 0;\n  @%first red.shared.add.u32 "
     "[slots], %sum;\n"
     "  bar.sync 0;\n  ld.shared.u32 %total, [slots];\n"},
    {"with a barrier behind it",
     "  bar.sync 0;\n  @%first st.shared.u32 [%own], %sum;\n  bar.sync 0;\n  mov.u32 %total, 0;\n  mov.u32 %i, 0;\n"
     "  mov.u32 %at, %slots;\nSLOT:\n  ld.shared.u32 %part, [%at];\n  add.u32 %total, %total, %part;\n  add.u32 %at, "
     "%at, 4;\n"
     "  add.u32 %i, %i, 1;\n  setp.lt.u32 %p, %i, %warps;\n  @%p bra SLOT;\n"},
};

/// In each round every thread adds tid * 7 + round + CTA to the block's sum, and acc = acc * 3 + sum. `leave`, before
/// each round.
std::string Kernel(const std::string& reduction, const std::string& leave) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry sums(.param .u64 out, .param .u32 rounds)\n{\n"
         "  .reg .b32 %thread, %lane, %warp, %warps, %round, %rounds, %acc, %sum, %part, %total, %own, %slots, %at, "
         "%i, %k;\n"
         "  .reg .b64 %rd<4>;\n  .reg .pred %p, %first;\n  .shared .align 4 .b8 slots[128];\n"
         "  mov.u32 %thread, %tid.x;\n  and.b32 %lane, %thread, 31;\n  shr.u32 %warp, %thread, 5;\n  mov.u32 %warps, "
         "%ntid.x;\n"
         "  shr.u32 %warps, %warps, 5;\n  setp.eq.u32 %first, %lane, 0;\n  mov.u32 %slots, slots;\n  shl.b32 %own, "
         "%warp, 2;\n"
         "  add.u32 %own, %own, %slots;\n  mov.u32 %acc, 0;\n  mov.u32 %round, 0;\n  ld.param.u32 %rounds, [rounds];\n"
         "ROUND:\n" +
         leave +
         "  mov.u32 %k, %ctaid.x;\n  mad.lo.u32 %sum, %thread, 7, %round;\n  add.u32 %sum, %sum, %k;\n"
         "  redux.sync.add.u32 %sum, %sum, -1;\n" +
         reduction +
         "  mad.lo.u32 %acc, %acc, 3, %total;\n  add.u32 %round, %round, 1;\n  setp.lt.u32 %p, %round, %rounds;\n  @%p "
         "bra ROUND;\n"
         "LEFT:\n  ld.param.u64 %rd0, [out];\n  mov.u32 %k, %ctaid.x;\n  mov.u32 %i, %ntid.x;\n  mad.lo.u32 %i, %k, "
         "%i, %thread;\n"
         "  mul.wide.u32 %rd1, %i, 4;\n  add.u64 %rd0, %rd0, %rd1;\n  st.global.u32 [%rd0], %acc;\n  ret;\n}\n";
}

std::string WithBarrier(std::string text, const std::string& barrier) {
  for (std::size_t at = 0; (at = text.find("bar.sync 0", at)) != std::string::npos; at += barrier.size())
    text.replace(at, 10, barrier);
  return text;
}

/// A round's partial sum of a warp.
std::uint32_t Partial(std::uint32_t warp, std::uint32_t round, std::uint32_t cta) {
  std::uint32_t sum = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) sum += (warp * 32 + lane) * 7 + round + cta;
  return sum;
}

std::vector<std::uint32_t> Launch(const std::string& ptx, std::uint32_t threads, const char* cpu) {
  exec::Engine::Options options;
  options.threads = 1;
  options.cpu_features = cpu;
  Executor executor(options);
  std::vector<std::uint32_t> out(std::size_t{threads} * kCtas);
  const std::uint64_t d_out = executor.Upload(out);
  const exec::LaunchFault fault =
      executor.Launch(ptx, "sums", {kCtas, 1, 1}, {threads, 1, 1}, ParamBlock().Add(d_out).Add(kWaitingRounds));
  INFO(fault.text << '\n' << ptx);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(d_out, out);
  return out;
}

}  // namespace

TEST_CASE("GiveWay_BlockSumsWithoutSecondBarrier_AreThoseOfTheirRound") {
  for (const Reduction& reduction : kReductions) {
    for (const char* const barrier : {"bar.sync 0", "bar.sync 1"}) {  // in line, and through the runtime
      const std::string ptx = Kernel(WithBarrier(reduction.text, barrier), "");
      for (const std::uint32_t threads : {64u, 256u, 1024u}) {
        INFO(reduction.name << ", " << barrier << ", " << threads << " threads");
        const std::vector<std::uint32_t> out = Launch(ptx, threads, "");
        for (std::uint32_t cta = 0; cta < kCtas; ++cta) {
          std::uint32_t want = 0;
          for (std::uint32_t round = 0; round < kWaitingRounds; ++round) {
            std::uint32_t sum = 0;
            for (std::uint32_t warp = 0; warp < threads / 32; ++warp) sum += Partial(warp, round, cta);
            want = want * 3 + sum;
          }
          for (std::uint32_t thread = 0; thread < threads; ++thread) REQUIRE(out[cta * threads + thread] == want);
        }
      }
    }
  }
}

// Warps leave one by one, one before each round. What they wrote last stays in their slots.
TEST_CASE("GiveWay_WarpsThatEndInBetween_AreNotWaitedFor") {
  const char* const leave = "  sub.u32 %k, %warps, %round;\n  setp.ge.u32 %p, %warp, %k;\n  @%p bra LEFT;\n";
  for (const char* const barrier : {"bar.sync 0", "bar.sync 1"}) {
    const std::string ptx = Kernel(WithBarrier(kReductions[1].text, barrier), leave);
    for (const std::uint32_t threads : {256u, 1024u}) {
      INFO(barrier << ", " << threads << " threads");
      const std::uint32_t warps = threads / 32;
      const std::vector<std::uint32_t> out = Launch(ptx, threads, "");
      for (std::uint32_t cta = 0; cta < kCtas; ++cta) {
        std::vector<std::uint32_t> slots(warps), want(warps);
        for (std::uint32_t round = 0; round < kWaitingRounds; ++round) {
          std::uint32_t sum = 0;
          for (std::uint32_t warp = 0; warp + round < warps; ++warp) slots[warp] = Partial(warp, round, cta);
          for (const std::uint32_t slot : slots) sum += slot;
          for (std::uint32_t warp = 0; warp + round < warps; ++warp) want[warp] = want[warp] * 3 + sum;
        }
        for (std::uint32_t thread = 0; thread < threads; ++thread)
          REQUIRE(out[cta * threads + thread] == want[thread / 32]);
      }
    }
  }
}

// A warp that waits for another one's flag while that one gives way, and one that goes past all of it.
TEST_CASE("GiveWay_WarpsThatSpin_AreNotWaitedFor") {
  const std::string spin =
      std::string(kPartial) +
      "  bar.sync 0;\n  ld.shared.u32 %total, [slots];\n  setp.ne.u32 %p, %warp, 1;\n  @%p bra WRITE;\n"
      "SPIN:\n  ld.volatile.shared.u32 %part, [slots];\n  setp.eq.u32 %p, %part, %total;\n  @%p bra SPIN;\n  bra "
      "WRITTEN;\n"
      "WRITE:\n  setp.eq.u32 %p, %thread, 0;\n  add.u32 %part, %total, 1;\n  @%p st.volatile.shared.u32 [slots], "
      "%part;\n"
      "WRITTEN:\n  bar.sync 0;\n";
  for (const char* const cpu : {"", "baseline"}) {
    const std::vector<std::uint32_t> out = Launch(Kernel(spin, ""), 128, cpu);
    for (std::uint32_t cta = 0; cta < kCtas; ++cta) {
      std::uint32_t want = 0;
      for (std::uint32_t round = 0; round < kWaitingRounds; ++round) want = want * 3 + Partial(0, round, cta);
      for (std::uint32_t thread = 0; thread < 128; ++thread) REQUIRE(out[cta * 128 + thread] == want);
    }
  }
}

TEST_CASE("GiveWay_FewerVectorFeatures_GiveTheSame") {
  for (const char* const cpu : {"avx2", "baseline"}) {
    const std::string ptx = Kernel(kByFirstWarp, "");
    CHECK(Launch(ptx, 192, cpu) == Launch(ptx, 192, ""));
  }
}

}  // namespace gridloom::test
