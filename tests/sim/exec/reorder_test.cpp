// Single CTAs of grids, and CTAs of several launches in orders that the scoreboard allows (docs/ranges.md, "Out of
// order").
#include "sim/exec/reorder/reorder.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"
#include "sim/exec/reorder/setting.h"
#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {
namespace {

constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 taken = 0;

// out[linear number of the CTA] = order in which it came
.visible .entry numbers(.param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<4>;
  .reg .pred %p;
  mov.u32 %r1, %tid.x;
  bar.sync 0;
  setp.ne.u32 %p, %r1, 0;
  @%p ret;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ctaid.y;
  mov.u32 %r4, %ctaid.z;
  mov.u32 %r5, %nctaid.x;
  mov.u32 %r6, %nctaid.y;
  mad.lo.u32 %r7, %r4, %r6, %r3;
  mad.lo.u32 %r7, %r7, %r5, %r2;
  atom.global.add.u32 %r8, [taken], 1;
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r7, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r8;
  ret;
}

// out[i] = in[i - reach] + 3 * in[i] + in[i + reach], indices cut off at the ends
.visible .entry blur(.param .u64 in, .param .u64 out, .param .s32 n, .param .s32 reach)
{
  .reg .b32 %r<20>;
  .reg .b64 %rd<12>;
  .reg .pred %p;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.s32 %r5, [n];
  ld.param.s32 %r6, [reach];
  setp.ge.s32 %p, %r4, %r5;
  @%p ret;
  sub.s32 %r7, %r4, %r6;
  max.s32 %r7, %r7, 0;
  add.s32 %r8, %r4, %r6;
  sub.s32 %r9, %r5, 1;
  min.s32 %r8, %r8, %r9;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mul.wide.s32 %rd3, %r4, 4;
  mul.wide.s32 %rd4, %r7, 4;
  mul.wide.s32 %rd5, %r8, 4;
  add.s64 %rd6, %rd1, %rd3;
  add.s64 %rd7, %rd1, %rd4;
  add.s64 %rd8, %rd1, %rd5;
  ld.global.u32 %r10, [%rd6];
  ld.global.u32 %r11, [%rd7];
  ld.global.u32 %r12, [%rd8];
  mad.lo.u32 %r13, %r10, 3, %r11;
  add.u32 %r13, %r13, %r12;
  add.s64 %rd9, %rd2, %rd3;
  st.global.u32 [%rd9], %r13;
  ret;
}

// data[i] = data[i] * 5 + 1, and of what each CTA has first, the order in which they came
.visible .entry take(.param .u64 data, .param .u64 list, .param .u64 count)
{
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  .reg .pred %p;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u64 %rd1, [data];
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r5, [%rd3];
  mad.lo.u32 %r6, %r5, 5, 1;
  st.global.u32 [%rd3], %r6;
  setp.ne.u32 %p, %r3, 0;
  @%p ret;
  ld.param.u64 %rd4, [count];
  atom.global.exch.b32 %r7, [%rd4], %r5;
  ld.param.u64 %rd5, [list];
  mul.wide.u32 %rd6, %r1, 4;
  add.u64 %rd7, %rd5, %rd6;
  st.global.u32 [%rd7], %r7;
  ret;
}

// data[start[0] + i] = i: where it writes is in memory that another kernel may have written
.visible .entry placed(.param .u64 data, .param .u64 start)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [start];
  ld.global.nc.u32 %r5, [%rd1];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  add.u32 %r6, %r4, %r5;
  ld.param.u64 %rd2, [data];
  mul.wide.u32 %rd3, %r6, 4;
  add.u64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r4;
  ret;
}
.visible .entry traps(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .pred %p;
  mov.u32 %r1, %ctaid.x;
  setp.eq.u32 %p, %r1, 5;
  @%p trap;
  ld.param.u64 %rd1, [out];
  st.global.u32 [%rd1], 1;
  ret;
}
)";

constexpr std::uint32_t kBlock = 128;

exec::Engine::Options OptionsOf(unsigned threads) {
  exec::Engine::Options options;
  options.threads = threads;
  return options;
}

struct Fixture {
  explicit Fixture(unsigned threads = 0) : executor(OptionsOf(threads)) {
    DiagnosticSink sink;
    auto loaded = exec::Program::Load(ptx::ParseModule(kPtx, sink), kPtx, executor.memory());
    REQUIRE(!sink.has_errors());
    REQUIRE(loaded.ok());
    program = *loaded;
    for (const auto form : {passes::RangeForm::kInterval, passes::RangeForm::kStrided})
      ranged.push_back(std::make_unique<exec::RangedProgram>(program, executor.memory(), rewrites, form));
  }
  exec::LaunchParams Launch(const char* kernel, exec::Dim3 grid, const ParamBlock& params) const {
    exec::LaunchParams launch;
    launch.program = program;
    launch.kernel = program->FindKernel(kernel);
    launch.grid = grid;
    launch.block = {kBlock, 1, 1};
    launch.params = params.bytes();
    return launch;
  }
  std::uint64_t Upload(std::size_t count, std::uint32_t value = 0) {
    return executor.Upload(std::vector<std::uint32_t>(count, value));
  }
  std::vector<std::uint32_t> Values(std::uint64_t address, std::size_t count) {
    std::vector<std::uint32_t> values(count);
    executor.Download(address, values);
    return values;
  }
  exec::LaunchFault Run(const exec::LaunchParams& launch, exec::LaunchStats* stats = nullptr) {
    return executor.engine().Run(launch, stats);
  }

  Executor executor;
  passes::RewriteCache rewrites{4};
  std::shared_ptr<exec::Program> program;
  std::vector<std::unique_ptr<exec::RangedProgram>> ranged;
};

/// A program: launches in order, on arrays that begin with known numbers.
class Chain {
 public:
  static constexpr std::uint32_t kCount = 60'000, kCtas = (kCount + kBlock - 1) / kBlock, kArrays = 3;

  explicit Chain(unsigned threads = 0) : f(threads) {
    for (std::uint32_t a = 0; a < kArrays; ++a) arrays.push_back(f.Upload(kCtas * kBlock));
    last = f.Upload(1);
    lists = f.Upload(kCtas);
  }

  /// 9 launches: sums over near and far neighbours from array to array, and one that works in place and leaves traces
  /// of its CTAs' order.
  void Build() {
    for (std::uint32_t i = 0; i < 9; ++i) {
      if (i == 4) {
        params.push_back(ParamBlock().Add(arrays[1]).Add(lists).Add(last));
        launches.push_back({"take", kCtas});
      } else {
        params.push_back(ParamBlock()
                             .Add(arrays[i % kArrays])
                             .Add(arrays[(i + 1) % kArrays])
                             .Add(kCount)
                             .Add(i % 2 == 0 ? 1 : 9000));
        launches.push_back({"blur", kCtas});
      }
    }
  }

  void Reset() {
    std::vector<std::uint32_t> values(kCtas * kBlock);
    for (std::uint32_t a = 0; a < kArrays; ++a) {
      for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = i * (a + 7);
      std::memcpy(reinterpret_cast<void*>(arrays[a]), values.data(), values.size() * 4);
    }
    std::memset(reinterpret_cast<void*>(last), 0, 4);
    std::memset(reinterpret_cast<void*>(lists), 0, kCtas * 4);
  }

  std::vector<std::vector<std::uint32_t>> Result() {
    std::vector<std::vector<std::uint32_t>> result;
    for (const std::uint64_t array : arrays) result.push_back(f.Values(array, kCtas * kBlock));
    result.push_back(f.Values(lists, kCtas));
    return result;
  }

  std::vector<std::vector<std::uint32_t>> InOrder() {
    Reset();
    for (std::size_t i = 0; i < launches.size(); ++i) {
      exec::LaunchParams launch = f.Launch(launches[i].first, {launches[i].second, 1, 1}, params[i]);
      launch.in_turn = true;
      CHECK(f.Run(launch).kind == exec::FaultKind::kNone);
    }
    return Result();
  }

  std::vector<std::vector<std::uint32_t>> Reordered(exec::RangedProgram& ranged, exec::Reorderer::Options options,
                                                    exec::Reorderer::Counts* counts = nullptr) {
    Reset();
    exec::Reorderer reorderer(f.executor.engine(), f.executor.memory(), std::move(options));
    std::vector<exec::ReorderedRun> runs(launches.size());
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const auto kernel = ranged.Find(launches[i].first);
      REQUIRE(kernel.why_not == "");
      exec::Reorderer::Added added{f.Launch(launches[i].first, {launches[i].second, 1, 1}, params[i]), kernel};
      added.in_turn = std::string_view(launches[i].first) == "take";
      CHECK(reorderer.Add(std::move(added), runs[i]).kind == exec::FaultKind::kNone);
    }
    CHECK(reorderer.RunOut().kind == exec::FaultKind::kNone);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      CHECK(runs[i].why_whole == "");
      CHECK(runs[i].stats.ctas == launches[i].second);
    }
    if (counts != nullptr) *counts = reorderer.counts();
    return Result();
  }

  Fixture f;
  std::vector<std::uint64_t> arrays;
  std::uint64_t last = 0, lists = 0;
  std::vector<ParamBlock> params;
  std::vector<std::pair<const char*, std::uint32_t>> launches;
};

}  // namespace

TEST_CASE("Engine_NamedCtas_RunAndNoOthers") {
  Fixture f;
  const exec::Dim3 grid{5, 4, 3};
  const std::uint32_t kUntouched = 1'000'000;
  const auto out = f.Upload(grid.count(), kUntouched);
  const ParamBlock params = ParamBlock().Add(out);
  auto launch = f.Launch("numbers", grid, params);
  const std::vector<std::uint64_t> named{59, 0, 17, 16, 4, 5, 44};
  launch.ctas = named;
  exec::LaunchStats stats;
  CHECK(f.Run(launch, &stats).kind == exec::FaultKind::kNone);
  CHECK(stats.ctas == named.size());
  CHECK(stats.warps == named.size() * kBlock / 32);
  const auto got = f.Values(out, grid.count());
  std::vector<std::uint32_t> order;
  for (std::uint64_t cta = 0; cta < got.size(); ++cta) {
    CHECK((got[cta] != kUntouched) == (std::ranges::find(named, cta) != named.end()));
    if (got[cta] != kUntouched) order.push_back(got[cta]);
  }
  std::ranges::sort(order);
  CHECK(order == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("Engine_InTurn_RunsThemInTheOrderThatIsGiven") {
  Fixture f(4);
  const exec::Dim3 grid{5, 40, 3};
  const auto out = f.Upload(grid.count());
  const ParamBlock params = ParamBlock().Add(out);
  auto launch = f.Launch("numbers", grid, params);
  launch.in_turn = true;
  CHECK(f.Run(launch).kind == exec::FaultKind::kNone);
  const auto whole = f.Values(out, grid.count());
  for (std::uint32_t i = 0; i < whole.size(); ++i) REQUIRE(whole[i] == i);
  std::vector<std::uint64_t> backwards;
  for (std::uint64_t cta = grid.count(); cta != 0; --cta) backwards.push_back(cta - 1);
  launch.ctas = backwards;
  CHECK(f.Run(launch).kind == exec::FaultKind::kNone);
  const auto got = f.Values(out, grid.count());
  for (std::uint32_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == 2 * grid.count() - 1 - i);
}

TEST_CASE("Engine_NamedCtas_OfGridsThatRunAsAWhole_AreRefused") {
  Fixture f;
  const auto out = f.Upload(8);
  const ParamBlock params = ParamBlock().Add(out);
  auto launch = f.Launch("numbers", {8, 1, 1}, params);
  std::vector<std::uint64_t> named{8};
  launch.ctas = named;
  CHECK(f.Run(launch).text.find("CTA 8 is not in the grid") != std::string::npos);
  named[0] = 7;
  launch.cooperative = true;
  CHECK(f.Run(launch).text.find("has to run as a whole") != std::string::npos);
  launch.cooperative = false;
  launch.cluster = {2, 1, 1};
  CHECK(f.Run(launch).text.find("has to run as a whole") != std::string::npos);
}

TEST_CASE("Engine_NamedCta_ThatFaults_IsNamed") {
  Fixture f;
  const auto out = f.Upload(8);
  const ParamBlock params = ParamBlock().Add(out);
  auto launch = f.Launch("traps", {8, 1, 1}, params);
  const std::vector<std::uint64_t> named{7, 5, 1};
  launch.ctas = named;
  const auto fault = f.Run(launch);
  CHECK(fault.kind == exec::FaultKind::kTrap);
  CHECK(fault.cta.x == 5);
}

TEST_CASE("Reorderer_ChainOfLaunches_LeavesTheSameBitsForAnySeed") {
  Chain chain;
  chain.Build();
  const auto want = chain.InOrder();
  for (auto& ranged : chain.f.ranged) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      exec::Reorderer::Counts counts;
      CHECK(chain.Reordered(*ranged, {.seed = seed}, &counts) == want);
      CHECK(counts.batches == 1);
      CHECK(counts.launches == 9);
      CHECK(counts.ctas == 9 * Chain::kCtas);
      CHECK(counts.ahead > 0);
      CHECK(counts.side_by_side > 1);
    }
  }
}

TEST_CASE("Reorderer_OneSeed_OneOrderForAnyNumberOfThreads") {
  Chain one(1), four(4);
  one.Build();
  four.Build();
  exec::Reorderer::Counts of_one, of_four;
  CHECK(one.Reordered(*one.f.ranged[0], {.seed = 3}, &of_one) ==
        four.Reordered(*four.f.ranged[0], {.seed = 3}, &of_four));
  CHECK((of_one.ahead == of_four.ahead && of_one.side_by_side == of_four.side_by_side));
  exec::Reorderer::Counts of_another;  // else the numbers would say nothing about the order
  four.Reordered(*four.f.ranged[0], {.seed = 4}, &of_another);
  CHECK(of_another.ahead != of_four.ahead);
}

TEST_CASE("Reorderer_PagesWithoutOwners_GiveOtherBits") {
  Chain chain;
  chain.Build();
  const auto want = chain.InOrder();
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    wrong += chain.Reordered(*chain.f.ranged[1], {.seed = seed, .heed_owners = false}) != want;
  CHECK(wrong == 4);
}

TEST_CASE("Reorderer_ProfilerThatReadsMemory_SeesWhatWasBeforeItDone") {
  Fixture f;
  constexpr std::uint32_t kStart = 3000;
  const auto in = f.Upload(1, kStart / 5), start = f.Upload(1);
  const auto data = f.Upload(8000, 1);
  const ParamBlock first = ParamBlock().Add(in).Add(start).Add(1).Add(0), second = ParamBlock().Add(data).Add(start);
  const auto placed = f.ranged[1]->Find("placed");
  REQUIRE(placed.why_not == "");
  exec::Reorderer reorderer(f.executor.engine(), f.executor.memory(), {.seed = 1});
  std::vector<exec::ReorderedRun> runs(2);
  reorderer.Add({f.Launch("blur", {1, 1, 1}, first), f.ranged[1]->Find("blur")}, runs[0]);
  reorderer.Add({f.Launch("placed", {20, 1, 1}, second), placed, false, true}, runs[1]);
  CHECK(f.Values(start, 1)[0] == kStart);
  reorderer.RunOut();
  CHECK(reorderer.counts().batches == 2);
  const auto got = f.Values(data, 8000);
  for (std::uint32_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == (i - kStart < 20 * kBlock ? i - kStart : 1));
}

TEST_CASE("Reorderer_Fault_EndsTheBatch") {
  Fixture f;
  const auto out = f.Upload(8);
  const ParamBlock params = ParamBlock().Add(out);
  exec::Reorderer reorderer(f.executor.engine(), f.executor.memory(), {.seed = 1});
  std::vector<exec::ReorderedRun> runs(2);
  for (auto& run : runs) reorderer.Add({f.Launch("traps", {8, 1, 1}, params), f.ranged[0]->Find("traps")}, run);
  CHECK(reorderer.RunOut().kind == exec::FaultKind::kTrap);
  CHECK(runs[0].stats.ctas + runs[1].stats.ctas < 16);
  CHECK(reorderer.RunOut().kind == exec::FaultKind::kNone);
}

TEST_CASE("Reorderer_GridsWithoutEnd_RunAsTheyAre") {
  Fixture f;
  const auto in = f.Upload(1, 2), out = f.Upload(1);
  const ParamBlock params = ParamBlock().Add(in).Add(out).Add(1).Add(0);
  exec::Reorderer reorderer(f.executor.engine(), f.executor.memory(), {.seed = 1});
  exec::ReorderedRun run;
  CHECK(reorderer.Add({f.Launch("blur", {(1u << 20) + 1, 1, 1}, params), f.ranged[0]->Find("blur")}, run).kind ==
        exec::FaultKind::kNone);
  CHECK(run.why_whole == "it has more than 1048576 thread blocks");
  CHECK(run.stats.ctas == (1u << 20) + 1);
  CHECK(f.Values(out, 1)[0] == 10);
}

TEST_CASE("ParseReorder_TakesASeedAndAForm") {
  using exec::ParseReorder;
  CHECK(ParseReorder("5")->seed == 5);
  CHECK(ParseReorder("5")->form == passes::RangeForm::kStrided);
  CHECK(ParseReorder("18446744073709551615:strided")->seed == ~std::uint64_t{0});
  CHECK(ParseReorder("0:interval")->form == passes::RangeForm::kInterval);
  for (const char* wrong : {"", "x", "-1", "5:", "5:x", "5 ", ":interval", "18446744073709551616", "5:intervals"})
    CHECK(!ParseReorder(wrong));
}

TEST_CASE("Reorderer_Stopped_RunsNothingMore") {
  Chain chain;
  chain.Build();
  chain.Reset();
  const auto before = chain.Result();
  exec::Reorderer reorderer(chain.f.executor.engine(), chain.f.executor.memory(), {.stop = [] { return true; }});
  exec::ReorderedRun run;
  reorderer.Add({chain.f.Launch("blur", {10, 1, 1}, chain.params[0]), chain.f.ranged[0]->Find("blur")}, run);
  CHECK(reorderer.RunOut().kind == exec::FaultKind::kNone);
  CHECK(chain.Result() == before);
}

}  // namespace gridloom::test
