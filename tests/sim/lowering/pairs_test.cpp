// Kernels that an assembler makes the same machine code of take the same time once they are lowered, however their PTX
// is written.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "tests/sim/timing/model_fixture.h"
#include "tests/sim/trace/captured.h"

namespace gridloom {
namespace {

using timing::Cycle;

constexpr unsigned kTerms = 8, kThreads = 128, kCtas = 12, kTurns = 8;

/// How the body of the loop is written.
enum class Body {
  kTermByTerm,  ///< load, load, multiply and add
  kLoadsFirst,  ///< all loads, then the products
  kWithCopies,  ///< as kTermByTerm, with copies, addresses that are computed, and products that nobody reads
};

std::string TermText(unsigned term, Body body) {
  const std::string t = std::to_string(term), offset = std::to_string(term * kThreads * kCtas * 4);
  if (body != Body::kWithCopies)
    return "ld.global.f32 %f" + t + ", [%rd1+" + offset + "];\nld.global.f32 %g" + t + ", [%rd2+" + offset + "];\n";
  const auto load = [&](const std::string& to, const std::string& base, const std::string& name) {
    return "mov.b64 %" + name + "1" + t + ", " + base + ";\nadd.s64 %" + name + "2" + t + ", %" + name + "1" + t +
           ", " + offset + ";\nld.global.f32 %" + name + "3" + t + ", [%" + name + "2" + t + "];\nmov.f32 " + to + t +
           ", %" + name + "3" + t + ";\n";
  };
  return load("%f", "%rd1", "a") + load("%g", "%rd2", "b") + "mul.f32 %d" + t + ", %f" + t + ", %g" + t + ";\n";
}

/// out[i] = sum over turns and terms of a[...] * b[...].
std::string DotText(Body body) {
  std::string text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry dot(.param .u64 a, .param .u64 b, .param .u64 out) {
.reg .pred %p;
.reg .b32 %r<8>;
.reg .b64 %rd<12>;
.reg .f32 %f<9>, %g<9>, %d<9>, %acc, %a3<9>, %b3<9>;
.reg .b64 %a1<9>, %b1<9>, %a2<9>, %b2<9>;
ld.param.u64 %rd5, [a];
ld.param.u64 %rd6, [b];
ld.param.u64 %rd7, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
mul.wide.s32 %rd3, %r4, 4;
add.s64 %rd1, %rd5, %rd3;
add.s64 %rd2, %rd6, %rd3;
add.s64 %rd4, %rd7, %rd3;
mov.f32 %acc, 0f00000000;
mov.u32 %r5, 0;
Loop:
)";
  const auto product = [](unsigned term) {
    const std::string t = std::to_string(term);
    return "fma.rn.f32 %acc, %f" + t + ", %g" + t + ", %acc;\n";
  };
  for (unsigned term = 0; term < kTerms; ++term) {
    text += TermText(term, body);
    if (body != Body::kLoadsFirst) text += product(term);
  }
  for (unsigned term = 0; term < kTerms && body == Body::kLoadsFirst; ++term) text += product(term);
  const std::string step = std::to_string(kTerms * kThreads * kCtas * 4);
  return text + "add.s64 %rd1, %rd1, " + step + ";\nadd.s64 %rd2, %rd2, " + step +
         ";\nadd.s32 %r5, %r5, 1;\nsetp.lt.s32 %p, %r5, " + std::to_string(kTurns) +
         ";\n@%p bra Loop;\nst.global.f32 [%rd4], %acc;\nret;\n}\n";
}

/// A captured launch, again and again.
std::shared_ptr<trace::CtaSource> SourceOf(const test::Captured& captured, std::uint32_t threads) {
  const trace::LaunchShape shape{.ctas = captured.ctas.size(), .threads_per_cta = threads, .registers_per_thread = 32};
  return std::make_shared<timing::SyntheticSource>(captured.table.code, shape, [&captured](std::uint64_t cta) {
    return trace::LoadedCta{std::make_shared<const trace::CtaTrace>(captured.ctas.at(cta)), {}};
  });
}

Cycle CyclesOf(const std::string& device, sim::Lowering lowering, const test::Captured& captured) {
  sim::DeviceSpec spec = timing::TestDevice(device);
  spec.timing.lowering = lowering;
  const timing::Outcome fast = timing::RunLaunch(spec, SourceOf(captured, kThreads));
  CHECK(timing::BrokenLaw(spec, fast) == "");
  CHECK(timing::Difference(fast, timing::RunLaunch(spec, SourceOf(captured, kThreads), {.threads = 3})) == "");
  CHECK(timing::Difference(fast, timing::RunLaunch(spec, SourceOf(captured, kThreads), {.plain = true})) == "");
  return timing::KernelCycles(fast);
}

test::Captured RunDot(test::Executor& executor, Body body) {
  const std::vector<float> input(std::size_t{kTurns} * kTerms * kThreads * kCtas, 1.0f);
  std::vector<float> out(std::size_t{kThreads} * kCtas);
  const std::uint64_t a = executor.Upload(input), b = executor.Upload(input), sums = executor.Upload(out);
  test::ParamBlock block;
  block.Add(a).Add(b).Add(sums);
  exec::LaunchParams launch;
  launch.grid = {kCtas, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  test::Captured captured = test::Run(executor, DotText(body), "dot", launch);
  executor.Download(sums, out);
  for (const float sum : out) CHECK(sum == float{kTurns * kTerms});
  for (const std::uint64_t buffer : {a, b, sums}) executor.Free(buffer);
  return captured;
}

/// A counter that every thread counts up by one, turn by turn, or the first lane of each warp by 32.
std::string CountText(bool by_leader) {
  std::string text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 counter) {
.reg .pred %p<3>;
.reg .b32 %r<8>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [counter];
cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r1, 0;
mov.u32 %r2, %laneid;
Loop:
)";
  if (by_leader) {
    text +=
        "activemask.b32 %r3;\npopc.b32 %r4, %r3;\nsetp.eq.s32 %p2, %r2, 0;\n"
        "@%p2 red.global.add.u32 [%rd2], %r4;\n";
  } else {
    text += "red.global.add.u32 [%rd2], 1;\n";
  }
  return text + "add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, " + std::to_string(kTurns) +
         ";\n@%p1 bra Loop;\nret;\n}\n";
}

test::Captured RunCount(test::Executor& executor, bool by_leader) {
  std::vector<std::uint32_t> counter{0};
  const std::uint64_t at = executor.Upload(counter);
  test::ParamBlock block;
  block.Add(at);
  exec::LaunchParams launch;
  launch.grid = {kCtas, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  test::Captured captured = test::Run(executor, CountText(by_leader), "count", launch);
  executor.Download(at, counter);
  CHECK(counter[0] == kCtas * kThreads * kTurns);
  executor.Free(at);
  return captured;
}

/// Turn by turn, some threads add what they load, the others something else: by branches or by guards. Of the first
/// warp all take one side, of the second all the other.
std::string ChooseText(bool by_guards) {
  std::string text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry choose(.param .u64 a, .param .u64 out) {
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %rd<6>;
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 5;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
mov.u32 %r3, 0;
mov.u32 %r4, 0;
Loop:
add.s32 %r5, %r1, %r3;
and.b32 %r6, %r5, 3;
setp.lt.u32 %p1, %r6, %r2;
)";
  if (by_guards) {
    text +=
        "@%p1 ld.global.u32 %r7, [%rd4];\n@%p1 add.s32 %r4, %r4, %r7;\n"
        "@!%p1 add.s32 %r8, %r4, %r4;\n@!%p1 add.s32 %r4, %r8, 1;\n";
  } else {
    text +=
        "@%p1 bra Loads;\nadd.s32 %r8, %r4, %r4;\nadd.s32 %r4, %r8, 1;\nbra Behind;\n"
        "Loads:\nld.global.u32 %r7, [%rd4];\nadd.s32 %r4, %r4, %r7;\nBehind:\n";
  }
  return text + "bar.sync 0;\nadd.s32 %r3, %r3, 1;\nsetp.lt.s32 %p2, %r3, " + std::to_string(kTurns) +
         ";\n@%p2 bra Loop;\nst.global.u32 [%rd5], %r4;\nret;\n}\n";
}

test::Captured RunChoose(test::Executor& executor, bool by_guards) {
  const std::vector<std::uint32_t> input(kThreads, 5);
  std::vector<std::uint32_t> out(kThreads);
  const std::uint64_t a = executor.Upload(input), sums = executor.Upload(out);
  test::ParamBlock block;
  block.Add(a).Add(sums);
  exec::LaunchParams launch;
  launch.grid = {kCtas, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  test::Captured captured = test::Run(executor, ChooseText(by_guards), "choose", launch);
  executor.Download(sums, out);
  CHECK(out[0] == (1u << kTurns) - 1);  // the first warp never loads
  for (const std::uint64_t buffer : {a, sums}) executor.Free(buffer);
  return captured;
}

double Ratio(Cycle a, Cycle b) { return static_cast<double>(a) / static_cast<double>(b); }

}  // namespace

TEST_CASE("Lowering_LoadsWhereTheyAreUsed_TakeAsLongAsLoadsFirst") {
  test::Executor executor;
  const test::Captured by_term = RunDot(executor, Body::kTermByTerm), first = RunDot(executor, Body::kLoadsFirst);
  const test::Captured copies = RunDot(executor, Body::kWithCopies);
  for (const char* device : {"h200", "v100", "gtx480"}) {
    INFO(device);
    const Cycle full = CyclesOf(device, sim::Lowering::kFull, first);
    CHECK(Ratio(CyclesOf(device, sim::Lowering::kFull, by_term), full) == Approx(1).margin(0.1));
    CHECK(Ratio(CyclesOf(device, sim::Lowering::kFull, copies), full) == Approx(1).margin(0.1));
    // What the test is about is there: as PTX stands they differ.
    const Cycle none = CyclesOf(device, sim::Lowering::kNone, first);
    const double by_term_none = Ratio(CyclesOf(device, sim::Lowering::kNone, by_term), none),
                 copies_none = Ratio(CyclesOf(device, sim::Lowering::kNone, copies), none);
    CHECK(by_term_none > 1.5);
    CHECK(copies_none > by_term_none);
    INFO("loads first " << full << " cycles, as PTX stands " << none << ", " << by_term_none << ", " << copies_none);
    CHECK(Ratio(full, none) < 1.02);
  }
}

TEST_CASE("Lowering_ShortBranches_TakeAsLongAsGuards") {
  test::Executor executor;
  const test::Captured branches = RunChoose(executor, false), guards = RunChoose(executor, true);
  for (const char* device : {"h200", "v100", "gtx480"}) {
    INFO(device);
    const Cycle full = CyclesOf(device, sim::Lowering::kFull, branches);
    CHECK(Ratio(full, CyclesOf(device, sim::Lowering::kFull, guards)) == Approx(1).margin(0.1));
    CHECK(full < CyclesOf(device, sim::Lowering::kNone, branches));
  }
}

TEST_CASE("Lowering_AtomicsOfAllLanesOnOneAddress_TakeAsLongAsOneByTheLeader") {
  test::Executor executor;
  const test::Captured all = RunCount(executor, false), leader = RunCount(executor, true);
  for (const char* device : {"h200", "v100"}) {
    INFO(device);
    CHECK(Ratio(CyclesOf(device, sim::Lowering::kFull, all), CyclesOf(device, sim::Lowering::kFull, leader)) ==
          Approx(1).margin(0.1));
    CHECK(CyclesOf(device, sim::Lowering::kNone, all) > 10 * CyclesOf(device, sim::Lowering::kNone, leader));
  }
  // Before Volta, lanes go one after the other.
  CHECK(CyclesOf("gtx480", sim::Lowering::kFull, all) > 10 * CyclesOf("gtx480", sim::Lowering::kFull, leader));
}

}  // namespace gridloom
