// Kernels with blocks of many thousand instructions, as unrolled arithmetic of long numbers has them, whose registers
// live across a loop that some lanes leave before others. The compiler cuts such blocks
// (sim/exec/compiler/promote_registers.h).
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

constexpr unsigned kRegisters = 48;

/// What one instruction does: r[to] from r[a], r[b], r[c]. Fused products read them as f32.
struct Step {
  enum class What : std::uint8_t { kAdd, kExclusiveOr, kMultiplyAdd, kFunnelShift, kSelect, kFusedProduct } what;
  unsigned to, a, b, c;
};

std::vector<Step> RandomSteps(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Step> steps(count);
  for (Step& step : steps) {
    step.what = static_cast<Step::What>(random() % 6);
    for (unsigned* const place : {&step.to, &step.a, &step.b, &step.c})
      *place = static_cast<unsigned>(random() % kRegisters);
  }
  return steps;
}

std::string Text(const Step& step) {
  const auto r = [](unsigned number) { return "%r" + std::to_string(number); };
  const std::string to = r(step.to), a = r(step.a), b = r(step.b), c = r(step.c);
  switch (step.what) {
    case Step::What::kAdd: return "add.u32 " + to + ", " + a + ", " + b + ";\n";
    case Step::What::kExclusiveOr: return "xor.b32 " + to + ", " + a + ", " + b + ";\n";
    case Step::What::kMultiplyAdd: return "mad.lo.u32 " + to + ", " + a + ", " + b + ", " + c + ";\n";
    case Step::What::kFunnelShift: return "shf.l.wrap.b32 " + to + ", " + a + ", " + b + ", " + c + ";\n";
    case Step::What::kSelect:
      return "setp.lt.u32 %p1, " + a + ", " + b + ";\nselp.b32 " + to + ", " + c + ", " + a + ", %p1;\n";
    // Numbers between 1 and 2, so that no result is NaN.
    case Step::What::kFusedProduct:
      return "and.b32 %a, " + a + ", 8388607;\nor.b32 %a, %a, 1065353216;\nand.b32 %b, " + b +
             ", 8388607;\nor.b32 %b, %b, 1065353216;\nmov.b32 %f1, %a;\nmov.b32 %f2, %b;\nmul.f32 %f3, %f1, "
             "%f2;\nadd.f32 %f3, %f3, "
             "%f1;\nmov.b32 " +
             to + ", %f3;\n";
  }
  return {};
}

void Do(const Step& step, std::vector<std::uint32_t>& r) {
  const std::uint32_t a = r[step.a], b = r[step.b], c = r[step.c];
  const auto number = [](std::uint32_t bits) { return std::bit_cast<float>((bits & 8388607U) | 1065353216U); };
  switch (step.what) {
    case Step::What::kAdd: r[step.to] = a + b; break;
    case Step::What::kExclusiveOr: r[step.to] = a ^ b; break;
    case Step::What::kMultiplyAdd: r[step.to] = a * b + c; break;
    case Step::What::kFunnelShift:
      r[step.to] = static_cast<std::uint32_t>((((std::uint64_t{b} << 32) | a) << (c % 32)) >> 32);
      break;
    case Step::What::kSelect: r[step.to] = a < b ? c : a; break;
    case Step::What::kFusedProduct:
      r[step.to] = std::bit_cast<std::uint32_t>(std::fma(number(a), number(b), number(a)));
      break;
  }
}

/// A thread starts from its number and goes round `rounds[thread]` times; what is written is a hash of all registers.
std::string Kernel(const std::vector<Step>& steps) {
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry long_block(.param .u64 rounds, .param .u64 out)
{
  .reg .b32 %r<48>; .reg .b32 %a, %b, %left, %t, %h; .reg .b64 %rd<6>; .reg .f32 %f<4>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [rounds]; ld.param.u64 %rd2, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %rd3, %t, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.u32 %left, [%rd4];
)";
  for (unsigned i = 0; i < kRegisters; ++i)
    text += "mad.lo.u32 %r" + std::to_string(i) + ", %t, 2654435761, " + std::to_string(i * 97 + 1) + ";\n";
  text += "ROUND:\nsetp.eq.u32 %p2, %left, 0;\n@%p2 bra END;\n";
  for (const Step& step : steps) text += Text(step);
  text += "sub.u32 %left, %left, 1;\nbra ROUND;\nEND:\nmov.u32 %h, 7;\n";
  for (unsigned i = 0; i < kRegisters; ++i) text += "mad.lo.u32 %h, %h, 31, %r" + std::to_string(i) + ";\n";
  return text + "st.global.u32 [%rd5], %h;\nret;\n}\n";
}

}  // namespace

TEST_CASE("LongBlock_RegistersAcrossALoop_AreTheHosts") {
  constexpr unsigned kThreads = 75;
  for (const std::size_t count : {100, 3000, 9000}) {
    const std::vector<Step> steps = RandomSteps(count, count);
    std::vector<std::uint32_t> rounds(kThreads), out(kThreads), want(kThreads);
    for (unsigned t = 0; t < kThreads; ++t) {
      rounds[t] = t % 5;
      std::vector<std::uint32_t> r(kRegisters);
      for (unsigned i = 0; i < kRegisters; ++i) r[i] = t * 2654435761U + i * 97 + 1;
      for (unsigned round = 0; round < rounds[t]; ++round) {
        for (const Step& step : steps) Do(step, r);
      }
      want[t] = 7;
      for (const std::uint32_t one : r) want[t] = want[t] * 31 + one;
    }
    Executor executor;
    const std::uint64_t in = executor.Upload(rounds), result = executor.Upload(out);
    const exec::LaunchFault fault =
        executor.Launch(Kernel(steps), "long_block", {1, 1, 1}, {kThreads, 1, 1}, ParamBlock().Add(in).Add(result));
    INFO(fault.text);
    REQUIRE(fault.kind == exec::FaultKind::kNone);
    executor.Download(result, out);
    CHECK(out == want);
  }
}
