// What LLVM makes of common idioms: intrinsics and integers of odd widths that no PTX instruction has. The interpreter
// runs all of them, and gives the same bits as machine code.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {
namespace {

struct Idiom {
  const char* name;
  const char* body;  ///< %r1 and %r2 to %r3; %r4 to %r9, %d1 to %d9, %h1 to %h9, %f1 to %f3 and %p1 to %p4 are free;
                     ///< %d8 and %d9 have %r1, %r2 as s64
};

constexpr Idiom kIdioms[] = {
    {"product beyond 32 bits",
     "mul.wide.u32 %d1, %r1, %r2; setp.gt.u64 %p1, %d1, 0xffffffff; selp.u32 %r3, 1, 0, %p1;"},
    {"product beyond 32 bits, with the product",
     "mul.wide.u32 %d1, %r1, %r2; shr.u64 %d2, %d1, 32; setp.ne.u64 %p1, %d2, 0; cvt.u32.u64 %r4, %d1; selp.u32 %r3, "
     "%r4, 7, %p1;"},
    {"quotient of a product",
     "mul.lo.u32 %r4, %r1, %r2; div.u32 %r5, %r4, %r1; setp.ne.u32 %p1, %r5, %r2; selp.u32 %r3, %r4, 1, %p1;"},
    {"quotient of a product, 64 bits",
     "mul.lo.u64 %d1, %d8, %d9; div.u64 %d2, %d1, %d8; setp.ne.u64 %p1, %d2, %d9; cvt.u32.u64 %r4, %d1; selp.u32 %r3, "
     "%r4, 1, %p1;"},
    {"signed quotient of a product",
     "mul.lo.s32 %r4, %r1, %r2; div.s32 %r5, %r4, %r1; setp.ne.s32 %p1, %r5, %r2; selp.u32 %r3, %r4, 1, %p1;"},
    {"product of 16 bits",
     "cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; cvt.u32.u16 %r4, %h1; cvt.u32.u16 %r5, %h2; mul.lo.u32 %r6, %r4, %r5;"
     "setp.gt.u32 %p1, %r6, 65535; selp.u32 %r3, 1, 0, %p1;"},
    {"largest quotient", "div.u32 %r4, -1, %r1; setp.lt.u32 %p1, %r4, %r2; selp.u32 %r3, 1, 0, %p1;"},
    {"sum that wraps", "add.u32 %r4, %r1, %r2; setp.lt.u32 %p1, %r4, %r1; selp.u32 %r3, -1, %r4, %p1;"},
    {"difference that wraps", "sub.u32 %r4, %r1, %r2; setp.gt.u32 %p1, %r2, %r1; selp.u32 %r3, 0, %r4, %p1;"},
    {"signed sum in 64 bits",
     "add.s64 %d1, %d8, %d9; min.s64 %d1, %d1, 2147483647; max.s64 %d1, %d1, -2147483648; cvt.u32.u64 %r3, %d1;"},
    {"signed difference in 64 bits",
     "sub.s64 %d1, %d8, %d9; min.s64 %d1, %d1, 2147483647; max.s64 %d1, %d1, -2147483648; cvt.u32.u64 %r3, %d1;"},
    {"sum of 8 bits out of range",
     "cvt.s32.s8 %r4, %r1; cvt.s32.s8 %r5, %r2; add.s32 %r6, %r4, %r5; add.s32 %r7, %r6, 128; setp.gt.u32 %p1, %r7, "
     "255;"
     "selp.u32 %r3, %r6, 9, %p1;"},
    {"sum of 16 bits out of range",
     "cvt.s32.s16 %r4, %r1; cvt.s32.s16 %r5, %r2; add.s32 %r6, %r4, %r5; add.s32 %r7, %r6, 32768; setp.lt.u32 %p1, "
     "%r7, 65536;"
     "cvt.u16.u32 %h1, %r6; cvt.u32.u16 %r8, %h1; selp.u32 %r3, %r8, 9, %p1;"},
    {"4 bits the other way round",
     "and.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 3; and.b32 %r5, %r1, 2; shl.b32 %r5, %r5, 1; or.b32 %r4, %r4, %r5; "
     "shr.u32 %r5, %r1, 1;"
     "and.b32 %r5, %r5, 2; or.b32 %r4, %r4, %r5; shr.u32 %r5, %r1, 3; and.b32 %r5, %r5, 1; or.b32 %r3, %r4, %r5;"},
    {"2 bits the other way round",
     "and.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 1; shr.u32 %r5, %r1, 1; and.b32 %r5, %r5, 1; or.b32 %r3, %r4, %r5;"},
    {"6 bytes the other way round",
     "and.b64 %d1, %d8, 0xff; shl.b64 %d1, %d1, 40; and.b64 %d2, %d8, 0xff00; shl.b64 %d2, %d2, 24; or.b64 %d1, %d1, "
     "%d2;"
     "and.b64 %d2, %d8, 0xff0000; shl.b64 %d2, %d2, 8; or.b64 %d1, %d1, %d2; shr.u64 %d2, %d8, 8; and.b64 %d2, %d2, "
     "0xff0000;"
     "or.b64 %d1, %d1, %d2; shr.u64 %d2, %d8, 24; and.b64 %d2, %d2, 0xff00; or.b64 %d1, %d1, %d2; shr.u64 %d2, %d8, 40;"
     "and.b64 %d2, %d2, 0xff; or.b64 %d1, %d1, %d2; cvt.u32.u64 %r4, %d1; shr.u64 %d1, %d1, 32; cvt.u32.u64 %r5, %d1;"
     "xor.b32 %r3, %r4, %r5;"},
    {"4 bytes the other way round",
     "shl.b32 %r4, %r1, 24; shl.b32 %r5, %r1, 8; and.b32 %r5, %r5, 0xff0000; or.b32 %r4, %r4, %r5; shr.u32 %r5, %r1, 8;"
     "and.b32 %r5, %r5, 0xff00; or.b32 %r4, %r4, %r5; shr.u32 %r5, %r1, 24; or.b32 %r3, %r4, %r5;"},
    {"turned by a distance",
     "and.b32 %r4, %r2, 31; shl.b32 %r5, %r1, %r4; sub.u32 %r6, 32, %r4; shr.u32 %r7, %r1, %r6; or.b32 %r3, %r5, %r7;"},
    {"a predicate as a half",
     "setp.lt.u32 %p1, %r1, %r2; selp.u32 %r4, 1, 0, %p1; cvt.rn.f16.u32 %h1, %r4; cvt.u32.u16 %r3, %h1;"},
    {"minus a predicate as a half",
     "setp.lt.u32 %p1, %r1, %r2; selp.s32 %r4, -1, 0, %p1; cvt.rn.f16.s32 %h1, %r4; cvt.u32.u16 %r3, %h1;"},
    {"a predicate as a float",
     "setp.lt.u32 %p1, %r1, %r2; selp.u32 %r4, 1, 0, %p1; cvt.rn.f32.u32 %f1, %r4; mov.b32 %r3, %f1;"},
    {"a half that is infinite or none",
     "cvt.u16.u32 %h1, %r1; abs.f16 %h2, %h1; setp.eq.f16 %p1, %h2, 0x7C00; setp.nan.f16 %p2, %h1, %h1; or.pred %p1, "
     "%p1, %p2;"
     "selp.u32 %r3, 1, 0, %p1;"},
    {"a float's class by three comparisons",
     "mov.b32 %f1, %r1; abs.f32 %f2, %f1; setp.eq.f32 %p1, %f2, 0f7F800000; setp.eq.f32 %p2, %f1, 0f00000000; or.pred "
     "%p1, %p1, %p2;"
     "testp.subnormal.f32 %p2, %f1; or.pred %p1, %p1, %p2; setp.nan.f32 %p2, %f1, %f1; or.pred %p1, %p1, %p2; selp.u32 "
     "%r3, 1, 0, %p1;"},
    {"smaller float by comparison",
     "mov.b32 %f1, %r1; mov.b32 %f2, %r2; setp.lt.f32 %p1, %f1, %f2; selp.f32 %f3, %f1, %f2, %p1; mov.b32 %r3, %f3;"},
    {"bits of a mask of lanes that are even",
     "popc.b32 %r4, %r1; and.b32 %r4, %r4, 1; clz.b32 %r5, %r2; bfind.u32 %r6, %r1; xor.b32 %r3, %r4, %r5; xor.b32 "
     "%r3, %r3, %r6;"},
    {"parity by folding",
     "shr.u32 %r4, %r1, 16; xor.b32 %r4, %r4, %r1; shr.u32 %r5, %r4, 8; xor.b32 %r4, %r4, %r5; shr.u32 %r5, %r4, 4; "
     "xor.b32 %r4, %r4, %r5;"
     "shr.u32 %r5, %r4, 2; xor.b32 %r4, %r4, %r5; shr.u32 %r5, %r4, 1; xor.b32 %r4, %r4, %r5; and.b32 %r3, %r4, 1;"},
    {"three-way comparison",
     "setp.lt.s32 %p1, %r1, %r2; setp.gt.s32 %p2, %r1, %r2; selp.s32 %r4, 1, 0, %p2; selp.s32 %r3, -1, %r4, %p1;"},
    {"a table in a number",
     "and.b32 %r4, %r1, 7; setp.eq.u32 %p1, %r4, 1; setp.eq.u32 %p2, %r4, 4; or.pred %p1, %p1, %p2; setp.eq.u32 %p2, "
     "%r4, 6;"
     "or.pred %p1, %p1, %p2; selp.u32 %r3, 1, 0, %p1;"},
    {"sign by shifts",
     "shr.s32 %r4, %r1, 31; shr.u32 %r5, %r1, 31; neg.s32 %r6, %r1; shr.u32 %r6, %r6, 31; or.b32 %r3, %r4, %r6;"},
    {"middle of two", "and.b32 %r4, %r1, %r2; xor.b32 %r5, %r1, %r2; shr.u32 %r5, %r5, 1; add.u32 %r3, %r4, %r5;"},
    {"high half of a signed product",
     "mul.wide.s32 %d1, %r1, %r2; add.s64 %d1, %d1, 2147483648; setp.gt.u64 %p1, %d1, 0xffffffff; selp.u32 %r3, 1, 0, "
     "%p1;"},
    {"high half of 128 bits", "mul.hi.u64 %d1, %d8, %d9; setp.ne.u64 %p1, %d1, 0; selp.u32 %r3, 1, 0, %p1;"},
    {"high half of signed 128 bits",
     "mul.hi.s64 %d1, %d8, %d9; mul.lo.s64 %d2, %d8, %d9; shr.s64 %d3, %d2, 63; setp.ne.s64 %p1, %d1, %d3; selp.u32 "
     "%r3, 1, 0, %p1;"},
};

std::string KernelOf(const Idiom& idiom) {
  return std::string(R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<5>;
  .reg .b16 %h<10>;
  .reg .b32 %r<20>;
  .reg .f32 %f<4>;
  .reg .b64 %d<20>;
  ld.param.u64 %d10, [in];
  ld.param.u64 %d11, [out];
  mov.u32 %r10, %tid.x;
  mul.wide.u32 %d12, %r10, 8;
  add.u64 %d13, %d10, %d12;
  ld.global.v2.u32 {%r1, %r2}, [%d13];
  cvt.s64.s32 %d8, %r1;
  cvt.s64.s32 %d9, %r2;
)") + idiom.body +
         R"(
  mul.wide.u32 %d12, %r10, 4;
  add.u64 %d13, %d11, %d12;
  st.global.u32 [%d13], %r3;
  ret;
}
)";
}

/// Pairs of numbers at which something overflows, or does not quite.
std::vector<std::uint32_t> Inputs() {
  constexpr std::uint32_t kEdges[] = {1,          2,          3,          0x7f,       0x80,       0xff,
                                      0x100,      0x7fff,     0x8000,     0xffff,     0x10000,    0x3c00,
                                      0x7c00,     0xfc01,     0xb504,     0xb505,     0xb6db,     0x7fffffff,
                                      0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0x7f800000, 0x7fc00001,
                                      0x00000400, 0x007fffff, 0x3f800000, 0xdeadbeef};
  std::vector<std::uint32_t> pairs;
  for (const std::uint32_t a : kEdges)
    for (const std::uint32_t b : kEdges) pairs.insert(pairs.end(), {a, b});
  return pairs;
}

std::vector<std::uint32_t> Run(const std::string& ptx, const char* tiers, std::string& said) {
  exec::Engine::Options options;
  options.threads = 1;
  options.tiers = tiers;
  options.log = [&said](std::string_view text) { said += text; };
  Executor executor(options);
  const std::vector<std::uint32_t> pairs = Inputs();
  std::vector<std::uint32_t> results(pairs.size() / 2);
  const std::uint64_t in = executor.Upload(pairs), out = executor.Upload(results);
  const auto threads = static_cast<std::uint32_t>(results.size());
  const exec::LaunchFault fault = executor.Launch(ptx, "k", {1, 1, 1}, {threads, 1, 1}, ParamBlock().Add(in).Add(out));
  INFO(fault.text);
  CHECK(fault.kind == exec::FaultKind::kNone);
  executor.Download(out, results);
  return results;
}

}  // namespace

TEST_CASE("Interpreter_IdiomsOfLlvm_SameAsMachineCode") {
  for (const Idiom& idiom : kIdioms) {
    INFO(idiom.name);
    std::string said;
    const std::string ptx = KernelOf(idiom);
    const std::vector<std::uint32_t> interpreted = Run(ptx, "interpret", said);
    CHECK(said.empty());
    if (!said.empty()) UNSCOPED_INFO(said);
    CHECK(interpreted == Run(ptx, "off", said));
  }
}

}  // namespace gridloom::test
