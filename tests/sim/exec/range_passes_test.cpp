// The ranges that profilers report against the pages that kernels touch, on kernels compiled by nvcc and odd sizes.
#include <catch2/catch.hpp>
#include <cstring>
#include <iostream>
#include <random>

#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/printer.h"
#include "sim/exec/ranges/reference_counts.h"
#include "sim/exec/slices/slices.h"
#include "tests/golden.h"
#include "tests/sim/exec/instruction_count.h"
#include "tests/sim/exec/range_check.h"

using namespace gridloom;

namespace {

/// One launch of a kernel of tests/golden/ranges/nvcc_kernels.ptx.
struct Case {
  std::string kernel;
  exec::Dim3 grid, block;
  test::ParamBlock params;
  double most = 0;  ///< how many times as many pages as are touched may be reported, as intervals and as strided sets
  double most_strided = 0;
};

class Arrays {
 public:
  explicit Arrays(test::Executor& executor) : executor_(executor) {}
  /// Small numbers, so that indices loaded from it are indices.
  std::uint64_t Make(std::uint64_t count, std::uint32_t modulus = 17) {
    std::vector<std::uint32_t> data(count);
    for (std::uint64_t i = 0; i < count; ++i) data[i] = static_cast<std::uint32_t>(i * 7 % modulus);
    const std::uint64_t address = executor_.Upload(data);
    arrays.push_back({address, count * 4});
    return address;
  }
  std::vector<test::RangeArray> arrays;

 private:
  test::Executor& executor_;
};

/// Whatever stands before the first section of a golden file.
std::string GoldenInput(const std::string& path) {
  std::string text = testing::ReadFile(path);
  text.resize(std::min(text.size(), text.find("//--- ")));
  return text;
}

std::vector<Case> Cases(Arrays& arrays) {
  std::vector<Case> cases;
  const auto add = [&](std::string kernel, exec::Dim3 grid, exec::Dim3 block, test::ParamBlock params, double most,
                       double most_strided) {
    cases.push_back({std::move(kernel), grid, block, std::move(params), most, most_strided});
  };
  for (const std::uint32_t n : {1u, 1000u, 70'001u}) {
    const std::uint64_t a = arrays.Make(n), b = arrays.Make(n), c = arrays.Make(n);
    add("vecadd", {(n + 255) / 256, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(b).Add(c).Add(n), 1.01, 1.01);
    add("saxpy_stride", {7, 1, 1}, {96, 1, 1}, test::ParamBlock().Add(a).Add(b).Add(2.0f).Add(n), 1.01, 1.01);
    const std::uint64_t sums = arrays.Make((n + 511) / 512);
    add("reduce", {(n + 511) / 512, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(sums).Add(n), 1.01, 1.01);
    const std::uint64_t bins = arrays.Make(256);
    add("hist", {5, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(bins).Add(n), 1.2, 1.2);
  }
  for (const std::uint32_t n : {16u, 48u, 80u, 176u}) {
    const std::uint64_t a = arrays.Make(n * n), b = arrays.Make(n * n), c = arrays.Make(n * n);
    const auto params = test::ParamBlock().Add(a).Add(b).Add(c).Add(n);
    add("matmul", {n / 16, n / 8, 1}, {16, 8, 1}, params, 1.5, 1.2);
    add("matmul_tiled", {n / 16, n / 16, 1}, {16, 16, 1}, params, 1.5, 1.2);
  }
  for (const auto& [nx, ny, nz] : {std::array{64u, 48u, 20u}, std::array{33u, 21u, 13u}, std::array{130u, 70u, 6u}}) {
    const std::uint64_t in = arrays.Make(nx * ny * nz), out = arrays.Make(nx * ny * nz);
    add("stencil3d", {(nx + 31) / 32, (ny + 3) / 4, 1}, {32, 4, 1},
        test::ParamBlock().Add(in).Add(out).Add(nx).Add(ny).Add(nz), 60, 2.5);
  }
  for (const std::uint32_t size : {32u, 96u, 224u}) {
    const std::uint64_t in = arrays.Make(size * size), out = arrays.Make(size * size);
    add("transpose", {size / 32, size / 32, 1}, {32, 8, 1}, test::ParamBlock().Add(out).Add(in).Add(size).Add(size),
        1.5, 1.5);
  }
  {
    const std::uint64_t a = arrays.Make(5000), b = arrays.Make(60'000);
    struct P {
      std::uint64_t a;
      std::int32_t n;
      std::uint64_t b;
      std::int64_t pitch;
    } p{a, 3000, b, 17};
    add("byvalue", {13, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(p), 20, 20);
    add("calls", {11, 1, 1}, {128, 1, 1}, test::ParamBlock().Add(b).Add(a).Add(9), 3, 3);
    add("pick", {11, 1, 1}, {128, 1, 1}, test::ParamBlock().Add(b).Add(a).Add(0).Add(777), 4, 4);
    add("pick", {11, 1, 1}, {128, 1, 1}, test::ParamBlock().Add(b).Add(a).Add(1).Add(777), 4, 4);
  }
  return cases;
}

void CheckCases(test::Executor& executor, const std::string& ptx, const std::vector<Case>& cases,
                const Arrays& arrays) {
  for (const Case& test_case : cases) {
    for (const auto form : {passes::RangeForm::kInterval, passes::RangeForm::kStrided}) {
      const bool interval = form == passes::RangeForm::kInterval;
      exec::LaunchParams launch;
      launch.grid = test_case.grid;
      launch.block = test_case.block;
      launch.params = test_case.params.bytes();
      const auto check = test::CheckRanges(executor, ptx, test_case.kernel, launch, arrays.arrays, form);
      const std::string name = test_case.kernel + " " + std::to_string(test_case.grid.x) + "x" +
                               std::to_string(test_case.grid.y) + (interval ? " interval" : " strided");
      INFO(name);
      CHECK(check.reason == "");
      CHECK(check.fault == "");
      CHECK(check.missed == "");
      CHECK(check.unbalanced == "");
      CHECK(check.same_results);
      REQUIRE(check.touched > 0);
      const double ratio = static_cast<double>(check.reported) / static_cast<double>(check.touched);
      CHECK(ratio <= (interval ? test_case.most : test_case.most_strided));
      if (std::getenv("GRIDLOOM_RANGE_TABLE") != nullptr)
        std::cout << name << " " << check.touched << " " << check.reported << " " << ratio << "\n";
    }
  }
}

}  // namespace

TEST_CASE("RangePasses_NvccKernels_ReportEveryPageTheyTouch") {
  test::Executor executor;
  Arrays arrays(executor);
  const auto cases = Cases(arrays);
  CheckCases(executor, GoldenInput("tests/golden/ranges/nvcc_kernels.ptx"), cases, arrays);
}

TEST_CASE("RangePasses_UnrolledLoops_StridedSetsHaveNoGapsFilled") {
  test::Executor executor;
  Arrays arrays(executor);
  std::vector<Case> cases;
  const std::uint64_t a = arrays.Make(512 * 2048), s = arrays.Make(2048);
  const double any = 1e9;
  cases.push_back({"column_sum", {8, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(s), any, 1.01});
  for (const std::uint32_t rows : {4u, 64u, 511u}) {
    cases.push_back({"column_sum_of", {8, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(s).Add(rows), any, 1.3});
  }
  const std::uint64_t x = arrays.Make(512 * 1024);
  cases.push_back({"row_sweep", {4, 1, 1}, {128, 1, 1}, test::ParamBlock().Add(x).Add(a).Add(512u), 1.01, 1.01});
  CheckCases(executor, GoldenInput("tests/golden/ranges/unrolled.ptx"), cases, arrays);
}

TEST_CASE("RangePasses_Masks_LeaveWhatTheyDoNotCutOff") {
  test::Executor executor;
  Arrays arrays(executor);
  std::vector<Case> cases;
  const std::uint64_t image = arrays.Make(512 * 512), ring = arrays.Make(4096 * 4);
  cases.push_back({"image24", {32, 32, 1}, {16, 16, 1}, test::ParamBlock().Add(image).Add(512u).Add(512u), 1.2, 1.01});
  cases.push_back({"image24", {26, 26, 1}, {16, 16, 1}, test::ParamBlock().Add(image).Add(411u).Add(403u), 1.2, 1.05});
  for (const std::int32_t first : {0, 4096, -4096, 1 << 20}) {
    cases.push_back({"ring", {16, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(ring).Add(first), 1.01, 1.01});
  }
  // The last CTA's numbers, or the first one's, lie on both sides of a multiple of 4096.
  for (const std::int32_t first : {100, -100, 4000}) {
    cases.push_back({"ring", {16, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(ring).Add(first), 2, 2});
  }
  CheckCases(executor, GoldenInput("tests/golden/ranges/masks.ptx"), cases, arrays);
}

TEST_CASE("RangePasses_DerivedIndices_AreAsExactAsTheirCounters") {
  test::Executor executor;
  Arrays arrays(executor);
  std::vector<Case> cases;
  const std::uint64_t in = arrays.Make(1 << 20), out = arrays.Make(64);
  for (const std::uint64_t n : {1, 3000, 20'000, 1 << 20}) {
    // An interval has all that lies between a CTA's rounds, strided sets have not.
    cases.push_back({"wide_index", {32, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(in).Add(out).Add(n), 40, 1.01});
    cases.push_back({"wide_index", {5, 1, 1}, {96, 1, 1}, test::ParamBlock().Add(in).Add(out).Add(n), 5, 1.1});
  }
  // Powers of two less one leave what lies in order in order; any other mask may give all up to itself.
  for (const std::uint16_t mask : {0, 1023, 4095, 16'383}) {
    cases.push_back({"masked", {64, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(in).Add(mask), 1.01, 1.01});
  }
  cases.push_back({"masked", {64, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(in).Add(std::uint16_t{12'288}), 13, 13});
  CheckCases(executor, GoldenInput("tests/golden/ranges/derived.ptx"), cases, arrays);
}

TEST_CASE("RangePasses_ClampedBorders_AreOfTheCtasAtTheBorderOnly") {
  test::Executor executor;
  Arrays arrays(executor);
  std::vector<Case> cases;
  for (const std::int32_t n : {1, 1024, 70'001}) {
    const std::uint64_t a = arrays.Make(static_cast<std::uint64_t>(n)),
                        out = arrays.Make(static_cast<std::uint64_t>(n));
    const exec::Dim3 grid{static_cast<std::uint32_t>(n + 255) / 256, 1, 1};
    const auto params = test::ParamBlock().Add(a).Add(out).Add(n);
    for (const char* kernel : {"clamp1d", "branched"}) cases.push_back({kernel, grid, {256, 1, 1}, params, 1.01, 1.01});
    // The first and the last CTA name all between their own elements and those at the other end.
    cases.push_back({"periodic1d", grid, {256, 1, 1}, params, 1.3, 1.3});
  }
  for (const auto& [w, h] : {std::array{64, 64}, std::array{1030, 70}, std::array{33, 129}}) {
    const auto elements = static_cast<std::uint64_t>(w * h);
    const std::uint64_t a = arrays.Make(elements), out = arrays.Make(elements);
    const auto across = static_cast<std::uint32_t>(w + 31) / 32, down = static_cast<std::uint32_t>(h + 7) / 8;
    const auto params = test::ParamBlock().Add(a).Add(out).Add(w).Add(h);
    cases.push_back({"clamp2d", {across, down, 1}, {32, 8, 1}, params, 1.05, 1.01});
    cases.push_back({"flat2d", {across, down, 1}, {32, 8, 1}, params, 1.05, 1.01});
    const std::uint64_t deep = arrays.Make(elements * 3), deep_out = arrays.Make(elements * 3);
    cases.push_back({"clamp3d",
                     {across, down, 1},
                     {32, 8, 1},
                     test::ParamBlock().Add(deep).Add(deep_out).Add(w).Add(h).Add(3),
                     20,
                     3});
  }
  CheckCases(executor, GoldenInput("tests/golden/ranges/clamps.ptx"), cases, arrays);
}

TEST_CASE("RangePasses_Guards_LeaveOutWhatNoThreadReaches") {
  test::Executor executor;
  Arrays arrays(executor);
  std::vector<Case> cases;
  const auto add = [&](std::string kernel, exec::Dim3 grid, exec::Dim3 block, test::ParamBlock params,
                       double most = 1.01) {
    cases.push_back({std::move(kernel), grid, block, std::move(params), most, most});
  };
  const std::uint64_t a = arrays.Make(64 * 65536), b = arrays.Make(64 * 1024);
  for (const std::int32_t n : {1, 1000, 1025, 5000}) {
    // Most CTAs have no thread that passes.
    add("below", {64, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(n));
    add("wide", {64, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(std::uint64_t(n)));
    add("between", {64, 1, 1}, {1024, 1, 1}, test::ParamBlock().Add(a).Add(n).Add(n + 40'000));
    add("stride_sum", {8, 1, 1}, {128, 1, 1}, test::ParamBlock().Add(a).Add(b).Add(n), 2.5);
  }
  add("one_of", {7, 1, 1}, {32, 1, 1}, test::ParamBlock().Add(a));
  add("not_first", {7, 1, 1}, {4, 1, 1}, test::ParamBlock().Add(a));
  for (const std::uint32_t n : {0u, 5u, 9u})
    add("first_blocks", {9, 1, 1}, {1024, 1, 1}, test::ParamBlock().Add(a).Add(b).Add(n));
  for (const std::int32_t x : {0, 100, 2000}) {
    add("window", {8, 8, 1}, {64, 16, 1}, test::ParamBlock().Add(a).Add(2048).Add(x / 10).Add(x / 25).Add(70).Add(30),
        2.5);
  }
  for (const std::int32_t rows : {1, 3, 4, 5, 63}) {
    add("tail", {4, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(b).Add(rows).Add(600), 2.5);
    add("lower_half", {4, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(1000).Add(rows), 4);
  }
  CheckCases(executor, GoldenInput("tests/golden/ranges/guards.ptx"), cases, arrays);
}

TEST_CASE("RangePasses_EveryWayToEnd_ReleasesOnce") {
  test::Executor executor;
  Arrays arrays(executor);
  std::vector<Case> cases;
  for (const exec::Dim3 block :
       {exec::Dim3{64, 1, 1}, exec::Dim3{100, 1, 1}, exec::Dim3{1024, 1, 1}, exec::Dim3{1, 1, 1}}) {
    for (const std::uint32_t limit : {0u, 1u, 5u, 37u, 5000u}) {
      const std::uint64_t array = arrays.Make(1024 * 64);
      const auto params = test::ParamBlock().Add(array).Add(limit);
      const double any = 1e9;
      if (limit != 0) {
        cases.push_back({"early_then_barrier", {3, 1, 1}, block, params, any, any});
        cases.push_back(
            {"exit_in_loop", {3, 1, 1}, block, test::ParamBlock().Add(array).Add(std::min(limit, 20u)), any, any});
      }
      cases.push_back({"ends_in_function", {3, 1, 1}, block, params, any, any});
      cases.push_back({"all_to_the_end", {3, 1, 1}, block, test::ParamBlock().Add(array), any, any});
    }
  }
  CheckCases(executor, GoldenInput("tests/golden/release/ends.ptx"), cases, arrays);
}

TEST_CASE("RangePasses_Cost_IsSmallBesideTheKernel") {
  const std::string ptx = GoldenInput("tests/golden/ranges/nvcc_kernels.ptx");
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  const auto rewritten = [&](const std::string& pipeline) {
    const auto result = passes::Run(*passes::Pipeline::Parse(pipeline), *module);
    REQUIRE(result.ok());
    return ptx::PrintModule(*result->module);
  };
  const std::string profiled = rewritten("profile"), released = rewritten("release");
  test::Executor executor;
  Arrays arrays(executor);
  const std::uint32_t n = 128 * 128 * 32;
  const std::uint64_t a = arrays.Make(n), b = arrays.Make(n), c = arrays.Make(n);
  // Sizes as in the paper's Table 2: 256x256 matrices, a 128x128x32 stencil.
  const std::vector<Case> cases{
      {"vecadd", {n / 256, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(b).Add(c).Add(n), 0, 0},
      {"saxpy_stride", {64, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(b).Add(2.0f).Add(n), 0, 0},
      {"matmul", {16, 16, 1}, {16, 16, 1}, test::ParamBlock().Add(a).Add(b).Add(c).Add(256u), 0, 0},
      {"matmul_tiled", {16, 16, 1}, {16, 16, 1}, test::ParamBlock().Add(a).Add(b).Add(c).Add(256u), 0, 0},
      {"stencil3d", {4, 32, 1}, {32, 4, 1}, test::ParamBlock().Add(a).Add(b).Add(128u).Add(128u).Add(32u), 0, 0},
      {"transpose", {16, 16, 1}, {32, 8, 1}, test::ParamBlock().Add(a).Add(b).Add(512u).Add(512u), 0, 0},
      {"reduce", {n / 512, 1, 1}, {256, 1, 1}, test::ParamBlock().Add(a).Add(c).Add(n), 0, 0},
  };
  for (const Case& test_case : cases) {
    INFO(test_case.kernel);
    exec::LaunchParams launch;
    launch.grid = test_case.grid;
    launch.block = test_case.block;
    launch.params = test_case.params.bytes();
    const auto kernel = test::CountInstructions(executor, ptx, test_case.kernel, launch);
    const auto release = test::CountInstructions(executor, released, test_case.kernel, launch);
    test::ParamBlock params = test_case.params;
    params.Add(launch.block.x).Add(launch.block.y).Add(launch.block.z);
    launch.block = {1, 1, 1};
    launch.params = params.bytes();
    const auto profile = test::CountInstructions(executor, profiled, test_case.kernel + "__profile", launch);
    REQUIRE(kernel.thread > 0);
    REQUIRE(profile.thread > 0);
    REQUIRE(release.thread > kernel.thread);
    const double ctas = static_cast<double>(test_case.grid.count());
    const auto share = [](std::uint64_t part, std::uint64_t whole) {
      return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    };
    CHECK(share(profile.thread, kernel.thread) < 3);
    if (std::getenv("GRIDLOOM_RANGE_TABLE") != nullptr) {
      std::cout << test_case.kernel << ": profiler " << profile.thread / ctas << " instructions a CTA, "
                << share(profile.thread, kernel.thread) << " % of threads', " << share(profile.warp, kernel.warp)
                << " % of warps'; release adds " << static_cast<double>(release.thread - kernel.thread) / ctas << ", "
                << share(release.thread - kernel.thread, kernel.thread) << " %, "
                << share(release.warp - kernel.warp, kernel.warp) << " %\n";
    }
  }
}

TEST_CASE("RangePasses_ReleaseInSlices_TakesBackWhatTheWholeGridSet") {
  const std::string ptx = GoldenInput("tests/golden/ranges/nvcc_kernels.ptx");
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  test::Executor executor;
  Arrays arrays(executor);
  const std::uint64_t a = arrays.Make(96 * 96), b = arrays.Make(96 * 96);
  for (const std::string pipeline : {"profile,release,slice", "profile-strided,release-strided,slice"}) {
    auto rewritten = passes::Run(*passes::Pipeline::Parse(pipeline), *module);
    REQUIRE(rewritten.ok());
    const auto* outcome = rewritten->Find("transpose");
    REQUIRE(outcome != nullptr);
    REQUIRE(outcome->status == passes::KernelStatus::kChanged);
    const std::string text = ptx::PrintModule(*rewritten->module);
    auto program = exec::Program::Load(ptx::ParseModule(text, sink), text, executor.memory());
    REQUIRE(program.ok());
    for (const std::uint64_t slice : {1, 2, 7}) {
      INFO(pipeline << ", slices of " << slice);
      exec::ReferenceCounts counts(executor.memory());
      exec::LaunchParams launch;
      launch.grid = {3, 3, 1};
      launch.block = {1, 1, 1};
      launch.ranges = &counts;
      test::ParamBlock params = test::ParamBlock().Add(a).Add(b).Add(96u).Add(96u);
      test::ParamBlock profile = params;
      profile.Add(32u).Add(8u).Add(1u);
      launch.params = profile.bytes();
      const auto profiler = passes::Run(*passes::Pipeline::Parse(pipeline.substr(0, pipeline.find(','))), *module);
      REQUIRE(executor.Launch(ptx::PrintModule(*profiler->module), "transpose__profile", launch).kind ==
              exec::FaultKind::kNone);
      CHECK_FALSE(counts.Counts().empty());
      launch.block = {32, 8, 1};
      launch.params = params.bytes();
      const exec::SlicedKernel kernel{*program, "", (*program)->FindKernel("transpose"), outcome->hidden};
      const auto run = exec::RunInSlices(executor.engine(), launch, kernel, slice);
      CHECK(run.fault.kind == exec::FaultKind::kNone);
      CHECK(run.slices == (9 + slice - 1) / slice);
      CHECK(counts.Counts().empty());
    }
  }
}

// Slices of a profiler of a sliced kernel say what the profiler of the whole grid says of the same CTAs.
TEST_CASE("RangePasses_ProfileOfSliced_SaysWhatTheWholeGridsProfilerSays") {
  const std::string ptx = GoldenInput("tests/golden/ranges/nvcc_kernels.ptx");
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  test::Executor executor;
  Arrays arrays(executor);
  const std::uint64_t a = arrays.Make(96 * 96), b = arrays.Make(96 * 96);
  const auto params = test::ParamBlock().Add(a).Add(b).Add(96u).Add(80u);
  const exec::Dim3 grid{3, 3, 1};
  for (const std::string form : {"profile", "profile-strided"}) {
    exec::ReferenceCounts whole(executor.memory());
    test::ParamBlock with_block = params;
    with_block.Add(32u).Add(8u).Add(1u);
    exec::LaunchParams launch;
    launch.grid = grid;
    launch.block = {1, 1, 1};
    launch.params = with_block.bytes();
    launch.ranges = &whole;
    const auto profiled = passes::Run(*passes::Pipeline::Parse(form), *module);
    REQUIRE(executor.Launch(ptx::PrintModule(*profiled->module), "transpose__profile", launch).kind ==
            exec::FaultKind::kNone);
    REQUIRE_FALSE(whole.Counts().empty());

    const auto rewritten = passes::Run(*passes::Pipeline::Parse("slice," + form), *module);
    const auto added = std::ranges::find(rewritten->added, "transpose", &passes::AddedKernel::of);
    REQUIRE(added != rewritten->added.end());
    const std::string text = ptx::PrintModule(*rewritten->module);
    const auto program = exec::Program::Load(ptx::ParseModule(text, sink), text, executor.memory());
    REQUIRE(program.ok());
    std::vector<std::byte> bytes(params.bytes().begin(), params.bytes().end());
    const std::uint32_t block[] = {32, 8, 1};
    for (std::size_t i = 0; i < added->hidden.size(); ++i) {
      bytes.resize(std::max<std::size_t>(bytes.size(), added->hidden[i].offset + 4));
      std::memcpy(bytes.data() + added->hidden[i].offset, &block[i], 4);
    }
    for (const std::uint64_t slice : {1, 2, 9}) {
      INFO(form << ", slices of " << slice);
      exec::ReferenceCounts counts(executor.memory());
      launch.params = bytes;
      launch.ranges = &counts;
      const exec::SlicedKernel kernel{*program, "", (*program)->FindKernel("transpose__profile"),
                                      rewritten->Find("transpose")->hidden};
      CHECK(exec::RunInSlices(executor.engine(), launch, kernel, slice).fault.kind == exec::FaultKind::kNone);
      CHECK(counts.Counts() == whole.Counts());
    }
  }
}
