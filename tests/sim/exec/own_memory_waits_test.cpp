// Loops that wait for other CTAs, whose way out depends on what the thread has kept in its local memory meanwhile.
#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

// CTA 0 polls a word that CTA `ctas - 1` stores, through an array with an index that is known at run time. `generic`:
// by the address that debuggers' code uses.
std::string WaitingKernel(bool generic) {
  const std::string space = generic ? "" : ".local";
  return R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry waits(.param .u64 words, .param .u32 zero)
{
  .local .align 4 .b8 kept[16];
  .reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [words];
  ld.param.u32 %r1, [zero];
  mov.u32 %r2, %tid.x;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra END;
  mov.u32 %r3, %ctaid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra STORE;
  mov.u64 %rd2, kept;
)" + std::string(generic ? "  cvta.local.u64 %rd2, %rd2;\n" : "") +
         R"(  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd2, %rd3;
  mul.lo.u32 %r4, %r1, 3;
  and.b32 %r4, %r4, 3;
  mul.wide.u32 %rd5, %r4, 4;
  add.u64 %rd6, %rd2, %rd5;
AGAIN:
  ld.volatile.global.u32 %r5, [%rd1];
  st)" + space +
         R"(.u32 [%rd4], %r5;
  ld)" + space +
         R"(.u32 %r6, [%rd6];
  setp.eq.u32 %p2, %r6, 0;
  @%p2 bra AGAIN;
  add.u32 %r7, %r6, 1;
  st.global.u32 [%rd1+4], %r7;
  bra END;
STORE:
  mov.u32 %r8, %nctaid.x;
  sub.u32 %r8, %r8, 1;
  setp.ne.u32 %p1, %r3, %r8;
  @%p1 bra END;
  st.volatile.global.u32 [%rd1], 41;
END:
  ret;
}
)";
}

}  // namespace

TEST_CASE("Wait_ThroughLocalMemory_LetsOtherCtasRun") {
  const std::string ptx = WaitingKernel(GENERATE(false, true));
  exec::Engine::Options options;
  options.threads = GENERATE(1u, 2u);
  options.cpu_features = GENERATE("", "avx2", "baseline");
  options.tiers = GENERATE("off", "interpret");
  Executor executor(options);
  for (const std::uint32_t ctas : {2u, 130u}) {
    std::vector<std::uint32_t> words(2, 0);
    const std::uint64_t at = executor.Upload(words);
    const exec::LaunchFault fault =
        executor.Launch(ptx, "waits", {ctas, 1, 1}, {32, 1, 1}, ParamBlock().Add(at).Add(std::uint32_t{0}));
    INFO(ctas << " CTAs: " << fault.text);
    REQUIRE(fault.kind == exec::FaultKind::kNone);
    executor.Download(at, words);
    CHECK(words[1] == 42);
  }
}
