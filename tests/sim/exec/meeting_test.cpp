// .sync instructions that lanes of one member mask reach from different places of the code (PTX ISA, 9.7.9.6).
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/sim/exec/executor_fixture.h"
#include "tests/sim/exec/random_meeting.h"

namespace gridloom::test {
namespace {

void CheckSeed(Executor& executor, std::uint64_t seed, std::uint32_t threads) {
  const RandomMeeting kernel(seed);
  const std::string ptx = kernel.Ptx();
  const auto parameter = static_cast<std::uint32_t>(seed * 7919 + 1);
  std::vector<std::uint32_t> out(std::size_t{threads} * RandomMeeting::kValues);
  const std::uint64_t d_out = executor.Upload(out);
  const exec::LaunchFault fault =
      executor.Launch(ptx, "random_meeting", {1, 1, 1}, {threads, 1, 1}, ParamBlock().Add(d_out).Add(parameter));
  INFO("seed " << seed << " threads " << threads << " fault: " << fault.text << '\n' << ptx);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(d_out, out);
  executor.Free(d_out);
  for (std::uint32_t first = 0; first < threads; first += 32) {
    const auto want = kernel.RunWarp(first, std::min(32u, threads - first), parameter);
    REQUIRE(!want.empty());
    for (std::uint32_t lane = 0; lane < want.size(); ++lane) {
      for (unsigned i = 0; i < RandomMeeting::kValues; ++i) {
        if (out[(first + lane) * RandomMeeting::kValues + i] == want[lane][i]) continue;
        INFO("thread " << first + lane << " value " << i);
        REQUIRE(out[(first + lane) * RandomMeeting::kValues + i] == want[lane][i]);
      }
    }
  }
}

// What each of 32 threads stores after `body`, which leaves it in %r1; %lane is its lane, %p whether it is odd.
std::vector<std::uint32_t> Run(const std::string& target, const std::string& body) {
  Executor executor;
  std::vector<std::uint32_t> out(32);
  const std::uint64_t d_out = executor.Upload(out);
  const std::string ptx =
      ".version 8.7\n.target " + target +
      "\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n  .reg .b32 %r<8>, %lane;\n  .reg .b64 %rd<3>;\n"
      "  .reg .pred %p, %q;\n  mov.u32 %lane, %laneid;\n  and.b32 %r1, %lane, 1;\n  setp.ne.u32 %p, %r1, 0;\n" +
      body +
      "\nSTORE:\n  ld.param.u64 %rd0, [out];\n  mul.wide.u32 %rd1, %lane, 4;\n  add.u64 %rd0, %rd0, %rd1;\n"
      "  st.global.u32 [%rd0], %r1;\n  ret;\n}\n";
  const exec::LaunchFault fault = executor.Launch(ptx, "k", {1, 1, 1}, {32, 1, 1}, ParamBlock().Add(d_out));
  INFO(ptx << fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(d_out, out);
  return out;
}

// Odd lanes and even lanes by instructions of their own; each adds what tells the arms apart.
std::string Arms(const std::string& odd, const std::string& even) {
  return "  @!%p bra EVEN;\n" + odd + "  add.u32 %r1, %r1, 1000;\n  bra STORE;\nEVEN:\n" + even + "\n";
}

}  // namespace

TEST_CASE("RandomMeeting_EveryThread_EqualsHost") {
  Executor executor;
  // More code for the same: it takes longer to compile.
  const bool narrow = std::getenv("GRIDLOOM_TEST_CPU") != nullptr;
  const std::uint64_t seeds = std::getenv("GRIDLOOM_TEST_FULL") ? 1000 : narrow ? 8 : 16;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::uint32_t shapes[] = {32, 64, 45, 7};
    CheckSeed(executor, seed, shapes[seed % 4]);
  }
}

TEST_CASE("Meeting_BothArms_ExchangeFromSm70On") {
  const std::string shuffle = "  shfl.sync.bfly.b32 %r1, %lane, 1, 31, 0xffffffff;\n";
  const auto meet = Run("sm_70", Arms(shuffle, shuffle)), apart = Run("sm_60", Arms(shuffle, shuffle));
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(meet[lane] == (lane ^ 1) + (lane & 1) * 1000);
    CHECK(apart[lane] == (lane & 1) * 1000);  // a lane that does not take part gives zero
  }
}

TEST_CASE("Meeting_ResultNotUsed_IsStillGiven") {
  const auto out = Run("sm_70", Arms("  shfl.sync.idx.b32 %r2, %lane, 0, 31, -1;\n  mov.u32 %r1, 5;\n",
                                     "  shfl.sync.idx.b32 %r1, %lane, 3, 31, -1;\n"));
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane & 1 ? 1005 : 3));
}

TEST_CASE("Meeting_OtherQualifiers_DoNotMeet") {
  // Nobody can go on: each arm does without the other.
  const auto out = Run("sm_70", Arms("  vote.sync.ballot.b32 %r1, %p, -1;\n", "  match.any.sync.b32 %r1, %r1, -1;\n"));
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane & 1 ? 0xaaaaaaaau + 1000 : 0x55555555u));
}

TEST_CASE("Meeting_MembersThatNeverCome_DoNotHang") {
  const auto out = Run("sm_70", "  @!%p bra STORE;\n  vote.sync.ballot.b32 %r1, %p, -1;\n");
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane & 1 ? 0xaaaaaaaau : 0));
  const auto parked =
      Run("sm_70", Arms("  vote.sync.ballot.b32 %r1, %p, -1;\n  bar.sync 0;\n", "  bar.sync 0;\n  mov.u32 %r1, 7;\n"));
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(parked[lane] == (lane & 1 ? 0xaaaaaaaau + 1000 : 7));
}

TEST_CASE("Meeting_ManyPlaces_AllGoOn") {
  // Each lane by an instruction of its own.
  std::string body = "  .reg .b32 %x;\n";
  for (unsigned lane = 0; lane < 31; ++lane) {
    const std::string n = std::to_string(lane);
    body += "  setp.ne.u32 %q, %lane, " + n + ";\n  @%q bra NOT" + n +
            ";\n  redux.sync.add.u32 %r1, %lane, -1;\n  add.u32 %r1, %r1, " + n + ";\n  bra STORE;\nNOT" + n + ":\n";
  }
  body += "  redux.sync.add.u32 %r1, %lane, -1;\n  add.u32 %r1, %r1, 31;\n";
  const auto out = Run("sm_80", body);
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == 31 * 32 / 2 + lane);
}

}  // namespace gridloom::test
