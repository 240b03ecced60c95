// The PTX implementation of the range functions, linked to rewritten kernels and run on the executor, against the
// executor's own reference counts.
#include "rewriter/passes/range_runtime.h"

#include <catch2/catch.hpp>

#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/printer.h"
#include "sim/exec/ranges/reference_counts.h"
#include "tests/golden.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;

namespace {

constexpr std::uint32_t kPageShift = 12;

std::unique_ptr<ptx::Module> Parse(const std::string& text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, "input", text));
  REQUIRE_FALSE(sink.has_errors());
  return module;
}

std::string Rewritten(const std::string& text, const std::string& pipeline) {
  const auto passes = passes::Pipeline::Parse(pipeline);
  REQUIRE(passes.ok());
  const auto rewritten = passes::Run(*passes, *Parse(text));
  REQUIRE(rewritten.ok());
  return ptx::PrintModule(*rewritten->module);
}

std::string Linked(const std::string& text) {
  std::vector<ptx::LinkInput> inputs;
  inputs.push_back({"kernel", Parse(text)});
  inputs.push_back({"ranges", Parse(std::string(passes::RangeRuntime()))});
  auto linked = ptx::LinkModules(std::move(inputs), [](std::string_view) { return false; });
  INFO((linked.ok() ? "" : linked.error().message));
  REQUIRE(linked.ok());
  return ptx::PrintModule(**linked);
}

struct Record {
  std::uint64_t base, bytes, counts;
};

}  // namespace

TEST_CASE("RangeRuntime_LinkedToAKernel_CountsAsTheExecutorDoes") {
  std::string text = testing::ReadFile("tests/golden/ranges/nvcc_kernels.ptx");
  text.resize(std::min(text.size(), text.find("//--- ")));
  for (const std::string form : {"", "-strided"}) {
    test::Executor executor;
    const std::uint32_t nx = 130, ny = 70, nz = 6, cells = nx * ny * nz;
    const std::vector<std::uint32_t> zeros(cells, 0);
    const std::uint64_t arrays[] = {executor.Upload(zeros), executor.Upload(zeros), executor.Upload(zeros)};
    const std::string own = Rewritten(text, "profile" + form + ",release" + form), linked = Linked(own);

    const std::uint64_t pages = (cells * 4 >> kPageShift) + 2;
    std::vector<Record> records;
    for (const std::uint64_t array : arrays) {
      records.push_back({array, cells * 4, executor.Upload(std::vector<std::uint64_t>(pages, 0))});
    }
    std::ranges::sort(records, {}, &Record::base);
    const std::uint64_t table = executor.Upload(records);
    REQUIRE(executor
                .Launch(linked, "gridloom_ranges_init", {1, 1, 1}, {1, 1, 1},
                        test::ParamBlock().Add(table).Add(static_cast<std::uint32_t>(records.size())).Add(kPageShift))
                .kind == exec::FaultKind::kNone);

    const exec::Dim3 grid{5, 18, 1}, block{32, 4, 1};
    const test::ParamBlock params = test::ParamBlock().Add(arrays[0]).Add(arrays[1]).Add(nx).Add(ny).Add(nz);
    test::ParamBlock profile = params;
    profile.Add(block.x).Add(block.y).Add(block.z);
    exec::ReferenceCounts expected(executor.memory(), 1u << kPageShift);
    exec::LaunchParams launch;
    launch.grid = grid;
    launch.block = {1, 1, 1};
    launch.params = profile.bytes();
    launch.ranges = &expected;
    REQUIRE(executor.Launch(own, "stencil3d__profile", launch).kind == exec::FaultKind::kNone);
    REQUIRE(executor.Launch(linked, "stencil3d__profile", grid, {1, 1, 1}, profile).kind == exec::FaultKind::kNone);

    const auto counts = [&](const Record& record, std::uint64_t page) {
      std::vector<std::uint32_t> both(2);
      executor.Download(record.counts + 8 * (page - (record.base >> kPageShift)), both);
      return exec::ReferenceCounts::Count{both[0], both[1]};
    };
    std::size_t counted = 0;
    const auto all = expected.Counts();
    for (const Record& record : records) {
      for (std::uint64_t page = record.base >> kPageShift; page <= (record.base + record.bytes - 1) >> kPageShift;
           ++page) {
        const auto it = all.find(page);
        CHECK(counts(record, page) == (it == all.end() ? exec::ReferenceCounts::Count{} : it->second));
        counted += it != all.end();
      }
    }
    CHECK(counted == all.size());
    CHECK(counted > 40);

    REQUIRE(executor.Launch(linked, "stencil3d", grid, block, params).kind == exec::FaultKind::kNone);
    for (const Record& record : records) {
      for (std::uint64_t page = record.base >> kPageShift; page <= (record.base + record.bytes - 1) >> kPageShift;
           ++page) {
        CHECK(counts(record, page) == exec::ReferenceCounts::Count{});
      }
    }
  }
}
