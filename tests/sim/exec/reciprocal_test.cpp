// Reciprocals of f32 rounded to nearest: every significand, every exponent, and warps of which some lanes are off.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

// Thread i writes the reciprocal of the float with the bits first + i * step; `odd_only`: threads with an even number
// write its bits.
std::string Kernel(const std::string& operation) {
  return R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry reciprocal(.param .u64 out, .param .u32 first, .param .u32 step, .param .u32 odd_only)
{
  .reg .b32 %r<10>; .reg .b64 %rd<4>; .reg .f32 %f<3>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [first]; ld.param.u32 %r2, [step]; ld.param.u32 %r3, [odd_only];
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x;
  mad.lo.u32 %r7, %r4, %r5, %r6;
  mad.lo.u32 %r8, %r7, %r2, %r1;
  mov.b32 %f1, %r8;
  not.b32 %r9, %r7;
  and.b32 %r9, %r9, %r3;
  setp.ne.u32 %p1, %r9, 0;
  @%p1 bra STORE;
  )" + operation +
         R"( %f1, %f1;
STORE:
  mul.wide.u32 %rd2, %r7, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f1;
  ret;
}
)";
}

float Flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

void Check(const std::string& operation, std::uint32_t first, std::uint32_t step, std::uint32_t count, bool odd_only) {
  Executor executor;
  std::vector<std::uint32_t> got(count);
  const std::uint64_t out = executor.Upload(got);
  const exec::LaunchFault fault =
      executor.Launch(Kernel(operation), "reciprocal", {count / 256, 1, 1}, {256, 1, 1},
                      ParamBlock().Add(out).Add(first).Add(step).Add(std::uint32_t{odd_only}));
  INFO(fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(out, got);
  const bool flushes = operation.find("ftz") != std::string::npos;
  std::uint32_t wrong = 0, example = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t bits = first + i * step;
    const float x = std::bit_cast<float>(bits);
    const float wanted = odd_only && i % 2 == 0 ? x : flushes ? Flush(1.0f / Flush(x)) : 1.0f / x;
    if (std::isnan(wanted) ? std::isnan(std::bit_cast<float>(got[i])) : got[i] == std::bit_cast<std::uint32_t>(wanted))
      continue;
    ++wrong;
    example = bits;
  }
  INFO(operation << ", the last wrong one is that of 0x" << std::hex << example);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("Reciprocal_EverySignificand_IsRoundedToNearest") { Check("rcp.rn.f32", 0x3f800000, 1, 1u << 23, false); }

TEST_CASE("Reciprocal_EveryExponentAndSign_IsRoundedToNearest") {
  constexpr std::uint32_t kCount = 1 << 20, kStep = 4099;  // once around all bit patterns
  for (const char* operation : {"rcp.rn.f32", "rcp.rn.ftz.f32"}) {
    Check(operation, 0, kStep, kCount, false);
    Check(operation, 0, kStep, kCount, true);
  }
}

// Neighbours of the places where the class of the argument or of the result changes, in warps that hold no others.
TEST_CASE("Reciprocal_AtTheEdgesOfTheNormalRange_IsRoundedToNearest") {
  for (const std::uint32_t middle :
       {0x00000000u, 0x00800000u, 0x00200000u, 0x7e800000u, 0x7f000000u, 0x7f800000u, 0x3f800000u}) {
    for (const std::uint32_t sign : {0u, 0x80000000u}) Check("rcp.rn.f32", (middle - 128) ^ sign, 1, 256, false);
  }
}
