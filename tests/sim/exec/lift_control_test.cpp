// Control flow, calls, parameters and local memory, run thread by thread on the lifter's output.
#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/exec/spmd_runner.h"

using namespace gridloom::exec;

namespace {

const std::string kHeader = ".version 8.0\n.target sm_90\n.address_size 64\n";

struct Params {
  const std::uint32_t* in;
  std::uint32_t* out;
};

// Runs kernel `k(.param .u64 in, .param .u64 out)` once.
std::uint32_t Run(const std::string& ptx, std::vector<std::uint32_t> in) {
  SpmdRunner runner(kHeader + ptx, "k");
  INFO(ptx);
  REQUIRE(runner.error() == "");
  std::uint32_t out = 0xdeadbeef;
  Params params{in.data(), &out};
  runner.Run(&params);
  return out;
}

const std::string kEntry = R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<8>; .reg .f32 %f<8>; .reg .b16 %h<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.global.u32 %r1, [%rd1];
  ld.global.u32 %r2, [%rd1+4];
)";

std::uint32_t RunBody(const std::string& body, std::vector<std::uint32_t> in) {
  return Run(kEntry + body + "\n  st.global.u32 [%rd2], %r3;\n  ret;\n}\n", std::move(in));
}

}  // namespace

TEST_CASE("Lift_Loop_SumsUp") {
  const std::string body = R"(
  mov.u32 %r3, 0;
  mov.u32 %r4, 0;
LOOP:
  setp.ge.u32 %p1, %r4, %r1;
  @%p1 bra DONE;
  add.u32 %r3, %r3, %r4;
  add.u32 %r4, %r4, 1;
  bra.uni LOOP;
DONE:)";
  CHECK(RunBody(body, {10, 0}) == 45);
  CHECK(RunBody(body, {0, 0}) == 0);
}

TEST_CASE("Lift_BrxIdx_TakesTarget") {
  const std::string body = R"(
  mov.u32 %r3, 0;
TARGETS: .branchtargets A, B, C;
  brx.idx %r1, TARGETS;
A: mov.u32 %r3, 10; bra DONE;
B: mov.u32 %r3, 20;
C: add.u32 %r3, %r3, 3;
DONE:)";
  CHECK(RunBody(body, {0, 0}) == 10);
  CHECK(RunBody(body, {1, 0}) == 23);
  CHECK(RunBody(body, {2, 0}) == 3);
}

TEST_CASE("Lift_GuardedRet_LeavesEarly") {
  const std::string ptx = kEntry + R"(
  st.global.u32 [%rd2], 1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 ret;
  st.global.u32 [%rd2], 2;
  setp.eq.u32 %p1, %r1, 1;
  @!%p1 exit;
  st.global.u32 [%rd2], 3;
  ret;
})";
  CHECK(Run(ptx, {0, 0}) == 1);
  CHECK(Run(ptx, {5, 0}) == 2);
  CHECK(Run(ptx, {1, 0}) == 3);
}

TEST_CASE("Lift_ScalarCall_PassesAndReturns") {
  const std::string ptx = R"(
.func (.param .b32 retval) twice_plus(.param .b32 a, .param .b32 b)
{
  .reg .b32 %r<5>;
  ld.param.u32 %r1, [a];
  ld.param.u32 %r2, [b];
  mad.lo.u32 %r3, %r1, 2, %r2;
  st.param.b32 [retval+0], %r3;
  ret;
}
)" + kEntry + R"(
  {
    .param .b32 param0;
    st.param.b32 [param0+0], %r1;
    .param .b32 param1;
    st.param.b32 [param1+0], %r2;
    .param .b32 retval0;
    call.uni (retval0), twice_plus, (param0, param1);
    ld.param.b32 %r3, [retval0+0];
  }
  st.global.u32 [%rd2], %r3;
  ret;
})";
  CHECK(Run(ptx, {20, 3}) == 43);
}

TEST_CASE("Lift_RegisterParameters_PassAndReturn") {
  const std::string ptx = R"(
.func (.reg .u32 %result) difference(.reg .u32 %a, .reg .u32 %b)
{
  sub.u32 %result, %a, %b;
  ret;
}
)" + kEntry + R"(
  call (%r3), difference, (%r1, 5);
  st.global.u32 [%rd2], %r3;
  ret;
})";
  CHECK(Run(ptx, {20, 3}) == 15);
}

TEST_CASE("Lift_ArrayParametersAndReturn_GoThroughLocalMemory") {
  const std::string ptx = R"(
.func (.param .align 8 .b8 result[16]) swap_words(.param .align 8 .b8 pair[16], .param .b32 add)
{
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  .local .align 8 .b8 scratch[8];
  ld.param.v2.u32 {%r1, %r2}, [pair];
  ld.param.u32 %r3, [add];
  mov.u64 %rd1, scratch;
  st.local.u32 [%rd1+4], %r1;
  ld.local.u32 %r1, [scratch+4];
  add.u32 %r1, %r1, %r3;
  st.param.b32 [result+0], %r2;
  st.param.b32 [result+12], %r1;
  ret;
}
)" + kEntry + R"(
  .local .align 16 .b8 mine[32];
  st.local.u32 [mine], 77;
  {
    .param .align 8 .b8 param0[16];
    st.param.v2.b32 [param0+0], {%r1, %r2};
    .param .b32 param1;
    st.param.b32 [param1], 100;
    .param .align 8 .b8 retval0[16];
    call (retval0), swap_words, (param0, param1);
    ld.param.b32 %r4, [retval0+0];
    ld.param.b32 %r5, [retval0+12];
  }
  ld.local.u32 %r6, [mine];
  mad.lo.u32 %r3, %r4, 1000, %r5;
  mad.lo.u32 %r3, %r3, 1000, %r6;
  st.global.u32 [%rd2], %r3;
  ret;
})";
  CHECK(Run(ptx, {11, 22}) == 22u * 1000000 + 111 * 1000 + 77);
}

TEST_CASE("Lift_Recursion_KeepsFramesApart") {
  const std::string ptx = R"(
.func (.param .b32 retval) factorial(.param .b32 n)
{
  .reg .b32 %r<8>; .reg .pred %p1;
  .local .align 4 .b32 saved;
  ld.param.u32 %r1, [n];
  st.local.u32 [saved], %r1;
  mov.u32 %r4, 1;
  setp.le.u32 %p1, %r1, 1;
  @%p1 bra DONE;
  sub.u32 %r2, %r1, 1;
  {
    .param .b32 param0;
    st.param.b32 [param0], %r2;
    .param .b32 retval0;
    call (retval0), factorial, (param0);
    ld.param.b32 %r3, [retval0];
  }
  ld.local.u32 %r5, [saved];
  mul.lo.u32 %r4, %r3, %r5;
DONE:
  st.param.b32 [retval], %r4;
  ret;
}
)" + kEntry + R"(
  call (%r3), factorial, (%r1);
  st.global.u32 [%rd2], %r3;
  ret;
})";
  CHECK(Run(ptx, {6, 0}) == 720);
  SpmdRunner runner(kHeader + ptx, "k");
  CHECK(runner.recursive());
}

/// Each function calls the next one twice: there are 2^48 ways down.
TEST_CASE("Lift_ManyWaysDown_EachFunctionIsLookedAtOnce") {
  constexpr int kFunctions = 48;
  std::string text = kHeader;
  for (int i = kFunctions - 1; i >= 0; --i) {
    text += ".func f" + std::to_string(i) + "()\n{\n  .local .align 16 .b8 frame[16];\n";
    for (int call = 0; call < 2 && i + 1 < kFunctions; ++call) text += "  call.uni f" + std::to_string(i + 1) + ";\n";
    text += "  ret;\n}\n";
  }
  text += ".visible .entry k()\n{\n  call.uni f0;\n  ret;\n}\n";
  const SpmdRunner runner(text, "k");
  REQUIRE(runner.error() == "");
  CHECK(runner.local_bytes() == 16 * kFunctions);
  CHECK(!runner.recursive());
}

TEST_CASE("Lift_IndirectCall_ReachesFunction") {
  const std::string ptx = R"(
.func (.param .b32 retval) add_one(.param .b32 a)
{ .reg .b32 %r1; ld.param.u32 %r1, [a]; add.u32 %r1, %r1, 1; st.param.b32 [retval], %r1; ret; }
.func (.param .b32 retval) negate(.param .b32 a)
{ .reg .b32 %r1; ld.param.u32 %r1, [a]; neg.s32 %r1, %r1; st.param.b32 [retval], %r1; ret; }
)" + kEntry + R"(
  mov.u64 %rd3, add_one;
  mov.u64 %rd4, negate;
  setp.ne.u32 %p1, %r2, 0;
  selp.b64 %rd5, %rd4, %rd3, %p1;
  {
    .param .b32 param0;
    st.param.b32 [param0], %r1;
    .param .b32 retval0;
    PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (retval0), %rd5, (param0), PROTO;
    ld.param.b32 %r3, [retval0];
  }
  st.global.u32 [%rd2], %r3;
  ret;
})";
  CHECK(Run(ptx, {5, 0}) == 6);
  CHECK(Run(ptx, {5, 1}) == static_cast<std::uint32_t>(-5));
}

TEST_CASE("Lift_ExitInFunction_EndsThread") {
  const std::string ptx = R"(
.func leave() { exit; }
)" + kEntry + R"(
  st.global.u32 [%rd2], 9;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 call leave;
  ret;
})";
  CHECK(Run(ptx, {0, 0}) == 9);
}

TEST_CASE("Lift_Alloca_GrowsAboveTheFrame") {
  const std::string body = R"(
  .local .align 4 .b8 fixed[4];
  .reg .b64 %top, %a, %b;
  st.local.u32 [fixed], 5;
  stacksave.u64 %top;
  alloca.u64 %a, 8, 16;
  alloca.u64 %b, 4;
  st.local.u32 [%a], %r1;
  st.local.u32 [%b], %r2;
  ld.local.u32 %r4, [%a];
  ld.local.u32 %r5, [%b];
  ld.local.u32 %r6, [fixed];
  stackrestore.u64 %top;
  mad.lo.u32 %r3, %r4, 100, %r5;
  mad.lo.u32 %r3, %r3, 100, %r6;)";
  CHECK(RunBody(body, {12, 34}) == 123405);
}

TEST_CASE("Lift_KernelParameters_IndexedAndGeneric") {
  const std::string ptx = R"(
.visible .entry k(.param .u64 in, .param .u64 out, .param .align 4 .b8 table[16])
{
  .reg .b32 %r<8>; .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.global.u32 %r1, [%rd1];
  mov.b64 %rd3, table;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd3, %rd4;
  ld.param.u32 %r2, [%rd5];
  cvta.param.u64 %rd6, %rd3;
  add.s64 %rd7, %rd6, %rd4;
  ld.u32 %r3, [%rd7];
  mad.lo.u32 %r4, %r2, 1000, %r3;
  st.global.u32 [%rd2], %r4;
  ret;
})";
  SpmdRunner runner(kHeader + ptx, "k");
  REQUIRE(runner.error() == "");
  std::uint32_t in = 2, out = 0;
  struct {
    const std::uint32_t* in;
    std::uint32_t* out;
    std::uint32_t table[4];
  } params{&in, &out, {3, 5, 7, 9}};
  runner.Run(&params);
  CHECK(out == 7007);
}

TEST_CASE("Lift_LoadsAndStores_AllWidthsExtend") {
  const std::string body = R"(
  .shared .align 16 .b8 s[64];
  .reg .b32 %t<8>; .reg .b64 %q<4>; .reg .b128 %w;
  mov.u32 %r4, s;
  st.shared.u32 [%r4], %r1;
  ld.shared.s8 %t1, [%r4];
  ld.shared.u8 %t2, [s+1];
  ld.shared.s16 %t3, [%r4+2];
  st.shared.v4.u32 [s+16], {%t1, %t2, %t3, %r2};
  ld.shared.v2.u64 {%q1, %q2}, [s+16];
  ld.shared.b128 %w, [s+16];
  mov.b128 {%q1, _}, %w;
  cvt.u32.u64 %t5, %q1;
  shr.u64 %q3, %q1, 32;
  cvt.u32.u64 %t6, %q3;
  cvt.u32.u64 %t7, %q2;
  add.u32 %r3, %t5, %t6;
  add.u32 %r3, %r3, %t7;)";
  // s8 of 0x80 is -128, u8 of 0xff 255, s16 of 0x8001 -32767.
  CHECK(RunBody(body, {0x8001ff80, 1}) == static_cast<std::uint32_t>(-128 + 255 - 32767));
}

TEST_CASE("Lift_Atomics_ReturnOldValues") {
  const std::string body = R"(
  .shared .align 4 .b32 s;
  st.shared.u32 [s], %r1;
  atom.shared.add.u32 %r4, [s], %r2;
  atom.shared.max.s32 %r5, [s], 100;
  red.shared.or.b32 [s], 1;
  atom.shared.cas.b32 %r6, [s], 101, 7;
  atom.shared.exch.b32 %r7, [s], 3;
  mad.lo.u32 %r3, %r4, 1000, %r5;
  mad.lo.u32 %r3, %r3, 1000, %r6;
  mad.lo.u32 %r3, %r3, 10, %r7;)";
  CHECK(RunBody(body, {2, 3}) == ((2u * 1000 + 5) * 1000 + 101) * 10 + 7);
}

TEST_CASE("Lift_Unsupported_RefusedByNameOnlyWhenReachable") {
  const std::string tail = R"(
  tcgen05.wait::ld.sync.aligned;
  ret;
})";
  SpmdRunner reachable(kHeader + kEntry + tail, "k");
  CHECK(reachable.error().find("tcgen05.wait::ld.sync.aligned") != std::string::npos);
  CHECK(reachable.error_line() != 0);
  SpmdRunner unreachable(kHeader + kEntry + "  ret;\n" + tail, "k");
  CHECK(unreachable.error() == "");
}
