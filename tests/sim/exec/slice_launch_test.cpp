// Slices as launches: which CTA a fault names, %gridid, slices at the same time, variables shared with the original
// program.
#include <catch2/catch.hpp>
#include <thread>

#include "rewriter/ptx/parser.h"
#include "sim/exec/slices/slices.h"
#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {
namespace {

constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 total = 5;
.visible .entry traps()
{
  .reg .b32 %r<4>;
  .reg .pred %p<3>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %ctaid.z;
  setp.eq.u32 %p0, %r1, 2;
  setp.eq.and.u32 %p1, %r2, 1, %p0;
  setp.eq.and.u32 %p2, %r3, 3, %p1;
  @%p2 trap;
  ret;
}
.visible .entry grid_ids(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u64 %rd1, %gridid;
  ld.param.u64 %rd2, [out];
  mul.wide.u32 %rd3, %r1, 8;
  add.u64 %rd2, %rd2, %rd3;
  st.global.u64 [%rd2], %rd1;
  ret;
}
.visible .entry adds(.param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  atom.global.add.u32 %r5, [total], %r1;
  mad.lo.u32 %r4, %r1, 32, %r2;
  ld.param.u64 %rd2, [out];
  mul.wide.u32 %rd3, %r4, 4;
  add.u64 %rd2, %rd2, %rd3;
  st.global.u32 [%rd2], %r3;
  ret;
}
)";

/// A program and its sliced form.
struct Fixture {
  Fixture() {
    DiagnosticSink sink;
    auto loaded = exec::Program::Load(ptx::ParseModule(kPtx, sink), kPtx, executor.memory());
    REQUIRE(!sink.has_errors());
    REQUIRE(loaded.ok());
    program = *loaded;
    sliced = std::make_unique<exec::SlicedProgram>(program, executor.memory(), rewrites);
  }
  exec::LaunchParams Launch(const char* kernel, exec::Dim3 grid, const ParamBlock& params) const {
    exec::LaunchParams launch;
    launch.program = program;
    launch.kernel = program->FindKernel(kernel);
    launch.grid = grid;
    launch.block = {32, 1, 1};
    launch.params = params.bytes();
    return launch;
  }

  Executor executor;
  passes::RewriteCache rewrites{1};
  std::shared_ptr<exec::Program> program;
  std::unique_ptr<exec::SlicedProgram> sliced;
};

}  // namespace

TEST_CASE("RunInSlices_Trap_NamesTheCtaOfTheGridAndStops") {
  Fixture f;
  const exec::Dim3 grid{4, 2, 5};
  for (const std::uint64_t size : {1, 3, 7, 64}) {
    const auto run =
        exec::RunInSlices(f.executor.engine(), f.Launch("traps", grid, {}), *f.sliced->Find("traps"), size);
    CHECK(run.fault.kind == exec::FaultKind::kTrap);
    CHECK(run.fault.cta.x == 2);
    CHECK(run.fault.cta.y == 1);
    CHECK(run.fault.cta.z == 3);
    CHECK(run.fault.ptx_line == 15);
    CHECK(run.fault.text.find("CTA (2,1,3)") != std::string::npos);
    const std::uint64_t number = 2 + 4 * (1 + 2 * 3);
    CHECK(run.slices == number / size + 1);
  }
}

TEST_CASE("RunInSlices_GridId_IsOneForAllSlicesAndNewForTheNextGrid") {
  Fixture f;
  const auto out = f.executor.Upload(std::vector<std::uint64_t>(10));
  ParamBlock params;
  params.Add(out);
  std::vector<std::uint64_t> first(10), second(10);
  const auto launch = f.Launch("grid_ids", {10, 1, 1}, params);
  CHECK(exec::RunInSlices(f.executor.engine(), launch, *f.sliced->Find("grid_ids"), 3).slices == 4);
  f.executor.Download(out, first);
  exec::RunInSlices(f.executor.engine(), launch, *f.sliced->Find("grid_ids"), 3);
  f.executor.Download(out, second);
  CHECK(first == std::vector<std::uint64_t>(10, first[0]));
  CHECK(second == std::vector<std::uint64_t>(10, second[0]));
  CHECK(first[0] != second[0]);
}

TEST_CASE("RunSlice_ManyAtTheSameTime_ShareTheOriginalsVariables") {
  Fixture f;
  constexpr std::uint32_t kCtas = 240;
  const auto out = f.executor.Upload(std::vector<std::uint32_t>(kCtas * 32));
  ParamBlock params;
  params.Add(out);
  const auto launch = f.Launch("adds", {kCtas, 1, 1}, params);
  const auto kernel = f.sliced->Find("adds");
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t first = t * 10; first < kCtas; first += 40)
        exec::RunSlice(f.executor.engine(), launch, *kernel, first, 10, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::uint32_t> got(kCtas * 32);
  f.executor.Download(out, got);
  CHECK(got == std::vector<std::uint32_t>(kCtas * 32, kCtas));
  const auto* const total = f.program->FindGlobal("total");
  CHECK(kernel->program->FindGlobal("total")->address == total->address);
  CHECK(*reinterpret_cast<const std::uint32_t*>(total->address) == 5 + 32 * (kCtas * (kCtas - 1) / 2));
}

TEST_CASE("RunInSlices_Stopped_RunsNoFurtherSlice") {
  Fixture f;
  const auto out = f.executor.Upload(std::vector<std::uint32_t>(40 * 32));
  ParamBlock params;
  params.Add(out);
  int left = 3;
  const auto run = exec::RunInSlices(f.executor.engine(), f.Launch("adds", {40, 1, 1}, params), *f.sliced->Find("adds"),
                                     5, [&] { return left-- == 0; });
  CHECK(run.slices == 3);
  CHECK(run.stats.ctas == 15);
}

}  // namespace gridloom::test
