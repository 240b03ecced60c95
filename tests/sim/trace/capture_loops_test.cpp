// Captured loops: accesses that go on by steps.
#include <catch2/catch.hpp>

#include "tests/sim/trace/captured.h"

using namespace gridloom;
using test::Captured, test::LanePath, test::PathsOf, test::Run;

namespace {

// Rows of 16 threads whose pitch is a parameter; a loop that all lanes run together, one in which they leave at
// different times, and one with a barrier around a loop.
const char* const kLoops = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry loops(.param .u64 in, .param .u32 pitch, .param .u32 rounds)
{
  .shared .align 4 .b8 s[4096];
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [in];
  ld.param.u32 %r2, [pitch];
  ld.param.u32 %r3, [rounds];
  mov.u32 %r1, %tid.x;
  shr.u32 %r4, %r1, 4;
  and.b32 %r5, %r1, 15;
  mad.lo.u32 %r6, %r4, %r2, %r5;
  mul.wide.u32 %rd2, %r6, 4;
  add.u64 %rd3, %rd1, %rd2;
  mul.wide.u32 %rd4, %r2, 4;
  mov.u32 %r7, 0;
  mov.u32 %r8, s;
TOGETHER:
  ld.global.u32 %r9, [%rd3];
  add.u64 %rd5, %rd3, %rd4;
  ld.global.u32 %r10, [%rd5+8];
  ld.shared.u32 %r11, [%r8+16];
  add.u64 %rd3, %rd5, %rd4;
  add.u32 %r8, %r8, 8;
  add.u32 %r7, %r7, 1;
  setp.lt.u32 %p1, %r7, %r3;
  @%p1 bra TOGETHER;
  rem.u32 %r12, %r1, 5;
  mul.lo.u32 %r13, %r1, %r1;
  mul.wide.u32 %rd6, %r13, 4;
  add.u64 %rd7, %rd1, %rd6;
APART:
  ld.global.u32 %r9, [%rd7+4];
  mad.lo.u32 %r14, %r1, 7919, %r12;
  mul.lo.u32 %r14, %r14, 2654435761;
  shr.u32 %r14, %r14, 20;
  mul.wide.u32 %rd8, %r14, 4;
  add.u64 %rd9, %rd1, %rd8;
  ld.global.u32 %r10, [%rd9];
  setp.eq.u32 %p2, %r12, 0;
  add.u64 %rd7, %rd7, 12;
  sub.u32 %r12, %r12, 1;
  @!%p2 bra APART;
  mov.u32 %r15, 0;
  mul.lo.u32 %r16, %r1, 4;
  mov.u32 %r17, s;
  add.u32 %r17, %r17, %r16;
  mul.wide.u32 %rd10, %r1, 8;
  add.u64 %rd11, %rd1, %rd10;
OUTER:
  st.shared.u32 [%r17+256], %r15;
  ld.global.u32 %r9, [%rd11];
  bar.sync 0;
  mov.u32 %r18, 0;
  mov.u64 %rd12, %rd11;
INNER:
  ld.global.u32 %r10, [%rd12+128];
  add.u64 %rd12, %rd12, 4;
  add.u32 %r18, %r18, 1;
  setp.ne.u32 %p3, %r18, 3;
  @%p3 bra INNER;
  add.u64 %rd11, %rd11, 1024;
  add.u32 %r15, %r15, 1;
  setp.le.u32 %p3, %r15, %r3;
  @%p3 bra OUTER;
  ret;
}
)";

using Accesses = std::vector<std::pair<bool, std::uint64_t>>;

Accesses LoopsOf(std::uint64_t in, std::uint32_t pitch, std::uint32_t rounds, std::uint32_t thread) {
  Accesses accesses;
  for (std::uint64_t k = 0; k < rounds; ++k) {
    const std::uint64_t at = in + (std::uint64_t{thread / 16} * pitch + thread % 16) * 4 + k * 2 * pitch * 4;
    accesses.insert(accesses.end(), {{false, at}, {false, at + std::uint64_t{pitch} * 4 + 8}, {false, 16 + 8 * k}});
  }
  for (std::uint32_t k = 0, n = thread % 5; k <= thread % 5; ++k, --n) {
    accesses.emplace_back(false, in + std::uint64_t{thread} * thread * 4 + 4 + 12 * k);
    accesses.emplace_back(false, in + std::uint64_t{(thread * 7919 + n) * 2654435761u >> 20} * 4);
  }
  for (std::uint64_t k = 0; k <= rounds; ++k) {
    accesses.emplace_back(true, thread * 4 + 256);
    accesses.emplace_back(false, in + thread * 8 + 1024 * k);
    for (std::uint64_t i = 0; i < 3; ++i) accesses.emplace_back(false, in + thread * 8 + 1024 * k + 4 * i + 128);
  }
  return accesses;
}

}  // namespace

TEST_CASE("Capture_LoopsWithSteps_TellEachRound") {
  test::Executor executor;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(1 << 16, 0));
  for (const std::uint32_t threads : {64u, 80u}) {  // the last warp of the second is half
    for (const std::uint32_t rounds : {1u, 2u, 7u, 300u}) {
      const std::uint32_t pitch = 50;
      test::ParamBlock block;
      block.Add(in).Add(pitch).Add(rounds);
      exec::LaunchParams launch;
      launch.grid = {3, 1, 1};
      launch.block = {threads, 1, 1};
      launch.params = block.bytes();
      const Captured captured = Run(executor, kLoops, "loops", launch);
      CHECK(captured.dropped == 0);
      for (const auto& [cta, trace] : captured.ctas) {
        for (std::uint32_t w = 0; w < trace.warps.size(); ++w) {
          const std::vector<LanePath> lanes = PathsOf(captured.table.code, trace, trace.warps[w], {});
          for (std::uint32_t lane = 0; lane < 32 && w * 32 + lane < threads; ++lane) {
            INFO(threads << " threads, " << rounds << " rounds, CTA " << cta << ", thread " << w * 32 + lane);
            REQUIRE(lanes[lane].accesses == LoopsOf(in, pitch, rounds, w * 32 + lane));
          }
        }
      }
    }
  }
}
