// Whole small kernels, run thread by thread.
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/sim/exec/spmd_runner.h"

using namespace gridloom::exec;

namespace {

const char* const kVectorAdd = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd4, %rd1;
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd4, %rd5;
  cvta.to.global.u64 %rd7, %rd2;
  add.s64 %rd8, %rd7, %rd5;
  ld.global.f32 %f1, [%rd8];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f2, %f1;
  cvta.to.global.u64 %rd9, %rd3;
  add.s64 %rd10, %rd9, %rd5;
  st.global.f32 [%rd10], %f3;
DONE:
  ret;
}
)";

}  // namespace

TEST_CASE("Lift_VectorAdd_ComputesSums") {
  SpmdRunner runner(kVectorAdd, "add");
  REQUIRE(runner.error() == "");
  float a[100], b[100], c[100] = {};
  for (int i = 0; i < 100; ++i) a[i] = static_cast<float>(i), b[i] = 0.5f * static_cast<float>(i);
  struct {
    float *a, *b, *c;
    unsigned n;
  } params{a, b, c, 90};
  for (unsigned tid = 0; tid < 100; ++tid) runner.Run(&params, tid, 100);
  for (int i = 0; i < 100; ++i) CHECK(c[i] == (i < 90 ? 1.5f * static_cast<float>(i) : 0.0f));
}

namespace {

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace

// A chain of .ftz instructions flushes each result once and no operand again, whatever registers hold them.
TEST_CASE("Lift_FtzChain_FlushesEachResultOnce") {
  const std::string ptx = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .f32 x, .param .u64 out, .param .u32 n)
{
  .reg .pred %p1; .reg .b32 %r<6>; .reg .b64 %rd1; .reg .f32 %f<6>;
  ld.param.f32 %f1, [x];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
  mul.ftz.f32 %f2, %f1, %f1;
  mov.b32 %r4, %f2;
LOOP:
  fma.rn.ftz.f32 %r4, %r4, %f2, %r4;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra LOOP;
  neg.ftz.f32 %f5, %r4;
  st.global.f32 [%rd1], %f5;
  ret;
}
)";
  SpmdRunner runner(ptx, "k");
  REQUIRE(runner.error() == "");
  INFO(runner.ir());
  // Of x (twice, as it is read twice), the product and the sum in the loop; the mask of the exponent stands for a
  // flush.
  CHECK(Count(runner.ir(), ", 2139095040") == 4);
}
