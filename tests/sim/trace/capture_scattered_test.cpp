// Captured accesses whose lanes lie in no order: of whole warps, of some lanes, of one; by an index or by a pointer of
// each lane.
#include <catch2/catch.hpp>

#include "tests/sim/trace/captured.h"

using namespace gridloom;
using test::Captured, test::LanePath, test::PathsOf, test::Run;

namespace {

// Each round reads a word at a signed index on both sides of `middle`; every third lane then the next one and a
// halfword at an unsigned index; one lane alone a byte; all of them a pointer, and what it points to.
const char* const kScattered = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry scattered(.param .u64 middle, .param .u64 pointers, .param .u32 rounds)
{
  .reg .b32 %r<20>; .reg .b16 %h<4>; .reg .b64 %rd<20>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [middle];
  ld.param.u64 %rd2, [pointers];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, 0;
ROUND:
  mad.lo.u32 %r4, %r3, 7919, %r2;
  mul.lo.u32 %r4, %r4, 2654435761;
  shr.u32 %r5, %r4, 22;
  sub.s32 %r6, %r5, 512;
  mul.wide.s32 %rd3, %r6, 4;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.u32 %r8, %r2, %r3;
  rem.u32 %r9, %r8, 3;
  setp.ne.u32 %p1, %r9, 0;
  @%p1 bra NEXT;
  ld.global.u32 %r10, [%rd4+4];
  mul.wide.u32 %rd5, %r5, 2;
  add.u64 %rd6, %rd1, %rd5;
  st.global.u16 [%rd6], %h1;
  and.b32 %r11, %r8, 31;
  setp.ne.u32 %p2, %r11, 12;
  @%p2 bra NEXT;
  cvt.u64.u32 %rd7, %r5;
  add.u64 %rd8, %rd1, %rd7;
  ld.global.u8 %h2, [%rd8+1];
NEXT:
  mul.wide.u32 %rd9, %r5, 8;
  add.u64 %rd10, %rd2, %rd9;
  ld.global.u64 %rd11, [%rd10];
  ld.global.u32 %r12, [%rd11];
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p3, %r3, %r1;
  @%p3 bra ROUND;
  ret;
}
)";

using Accesses = std::vector<std::pair<bool, std::uint64_t>>;

Accesses ScatteredOf(std::uint64_t middle, std::uint64_t pointers, std::uint32_t rounds, std::uint32_t thread,
                     const std::vector<std::uint64_t>& targets) {
  Accesses accesses;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint64_t index = (round * 7919 + thread) * 2654435761u >> 22;
    const std::uint64_t word = middle + (index - 512) * 4;
    accesses.emplace_back(false, word);
    if ((thread + round) % 3 == 0) {
      accesses.emplace_back(false, word + 4);
      accesses.emplace_back(true, middle + index * 2);
      if ((thread + round) % 32 == 12) accesses.emplace_back(false, middle + index + 1);
    }
    accesses.emplace_back(false, pointers + index * 8);
    accesses.emplace_back(false, targets[index]);
  }
  return accesses;
}

}  // namespace

TEST_CASE("Capture_ScatteredLanes_AreWhereTheyWere") {
  exec::Engine::Options options;
  options.cpu_features = GENERATE("", "avx2", "baseline");
  test::Executor executor(options);
  const std::uint64_t words = executor.Upload(std::vector<std::uint32_t>(4096, 0)), middle = words + 8192;
  std::vector<std::uint64_t> targets(1024);
  for (std::uint64_t i = 0; i < targets.size(); ++i) targets[i] = words + (i * i * 52361 + i) % 4096 * 4;
  const std::uint64_t pointers = executor.Upload(targets);
  for (const std::uint32_t threads : {96u, 45u}) {
    for (const std::uint32_t rounds : {1u, 5u, 90u}) {  // few enough for tries to be left, and many more
      test::ParamBlock block;
      block.Add(middle).Add(pointers).Add(rounds);
      exec::LaunchParams launch;
      launch.grid = {3, 1, 1};
      launch.block = {threads, 1, 1};
      launch.params = block.bytes();
      const Captured captured = Run(executor, kScattered, "scattered", launch);
      CHECK(captured.dropped == 0);
      for (const auto& [cta, trace] : captured.ctas) {
        for (std::uint32_t thread = 0; thread < threads; ++thread) {
          INFO(threads << " threads, " << rounds << " rounds, CTA " << cta << ", thread " << thread);
          const std::vector<LanePath> lanes = PathsOf(captured.table.code, trace, trace.warps[thread / 32], {});
          REQUIRE(lanes[thread % 32].accesses == ScatteredOf(middle, pointers, rounds, thread, targets));
        }
      }
    }
  }
}
