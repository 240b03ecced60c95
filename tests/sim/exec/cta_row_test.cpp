// CTAs of a row that run in one call (CtaCtx::row_left): each has its own number, and a fault names it.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

/// Each thread stores its CTA's place and its own number, those of CTA `bad` where no memory is from thread 96 on. With
/// a barrier each takes the number from its neighbour in shared memory.
std::string RowKernel(bool barrier) {
  return std::string(R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry row(.param .u64 out, .param .u32 bad)
{
  .reg .b32 %r<16>; .reg .b64 %rd<6>; .reg .pred %p<3>;
  .shared .align 4 .b8 words[512];
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [bad];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z;
  mov.u32 %r5, %nctaid.x; mov.u32 %r6, %nctaid.y; mov.u32 %r7, %tid.x;
  mad.lo.u32 %r8, %r4, %r6, %r3; mad.lo.u32 %r8, %r8, %r5, %r2;
  shl.b32 %r9, %r7, 2; mov.u32 %r10, %r7;
)") +
         (barrier ? R"(
  mad.lo.u32 %r11, %r8, 128, %r7; st.shared.u32 [%r9], %r11;
  bar.sync 0;
  xor.b32 %r12, %r9, 508; ld.shared.u32 %r10, [%r12];
  and.b32 %r10, %r10, 127; xor.b32 %r10, %r10, 127;
)"
                  : "") +
         R"(
  mad.lo.u32 %r13, %r8, 128, %r7; mul.wide.u32 %rd2, %r13, 16; add.u64 %rd3, %rd1, %rd2;
  setp.eq.u32 %p1, %r8, %r1; setp.ge.u32 %p2, %r7, 96; and.pred %p1, %p1, %p2;
  @!%p1 bra GOOD;
  add.u64 %rd3, %rd3, 1073741824;
GOOD:
  st.global.v4.u32 [%rd3], {%r2, %r3, %r4, %r10};
  ret;
}
)";
}

}  // namespace

TEST_CASE("CtaRows_EachCtaHasItsOwnNumber") {
  exec::Engine::Options options;
  options.cpu_features = GENERATE("", "avx2", "baseline");
  options.threads = GENERATE(1u, 3u);
  const bool barrier = GENERATE(false, true);
  Executor executor(options);
  const exec::Dim3 grid{150, 3, 2};
  std::vector<std::uint32_t> got(std::size_t{150} * 3 * 2 * 128 * 4);
  const std::uint64_t out = executor.Upload(got);
  REQUIRE(executor.Launch(RowKernel(barrier), "row", grid, {128, 1, 1}, ParamBlock().Add(out).Add(~0u)).kind ==
          exec::FaultKind::kNone);
  executor.Download(out, got);
  std::size_t wrong = 0, at = 0;
  for (std::uint32_t z = 0; z < 2; ++z)
    for (std::uint32_t y = 0; y < 3; ++y)
      for (std::uint32_t x = 0; x < 150; ++x)
        for (std::uint32_t t = 0; t < 128; ++t, at += 4)
          wrong += got[at] != x || got[at + 1] != y || got[at + 2] != z || got[at + 3] != t ? 1 : 0;
  CHECK(wrong == 0);
}

TEST_CASE("CtaRows_AFaultNamesCtaAndWarp") {
  exec::Engine::Options options;
  options.threads = 1;
  const bool barrier = GENERATE(false, true);
  Executor executor(options);
  const std::uint64_t out = executor.Upload(std::vector<std::uint32_t>(std::size_t{150} * 3 * 128 * 4));
  for (const std::uint32_t bad : {0u, 1u, 63u, 64u, 149u, 150u, 333u}) {
    const exec::LaunchFault fault =
        executor.Launch(RowKernel(barrier), "row", {150, 3, 1}, {128, 1, 1}, ParamBlock().Add(out).Add(bad));
    CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
    CHECK(fault.cta.x == bad % 150);
    CHECK(fault.cta.y == bad / 150);
    CHECK(fault.thread.x / 32 == 3);
  }
}
