// Random kernels in slices, through the whole executor, against the same program run thread by thread on the host: any
// flow graph, threads that leave anywhere, grids of up to three dimensions, slices of any size, in any order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

#include "rewriter/passes/slice_range.h"
#include "rewriter/ptx/parser.h"
#include "sim/exec/slices/slices.h"
#include "tests/sim/exec/executor_fixture.h"
#include "tests/sim/exec/random_kernel.h"

namespace gridloom::test {
namespace {

using exec::Dim3;

RandomKernelOptions Options(std::uint64_t seed) {
  RandomKernelOptions options;
  options.blocks = 2 + static_cast<unsigned>(seed % 6);
  options.operations = 4;
  options.step_limit = 40;
  options.uniform_bias = seed % 3 == 0;
  options.grid_reads = true;
  return options;
}

struct Case {
  RandomKernel kernel;
  std::uint32_t threads, parameter;
  Dim3 grid;
  std::vector<std::uint32_t> input, before;

  explicit Case(std::uint64_t seed) : kernel(seed, Options(seed)), input(RandomKernel::kInputs) {
    std::mt19937_64 random(seed * 31 + 7);
    static constexpr std::uint32_t kThreads[] = {32, 33, 7, 64};
    static constexpr Dim3 kGrids[] = {{11, 1, 1}, {3, 5, 1}, {1, 7, 2}, {4, 2, 3}, {1, 1, 9}, {5, 1, 2}};
    threads = kThreads[random() % 4];
    grid = kGrids[random() % 6];
    parameter = static_cast<std::uint32_t>(random());
    before.resize(threads * grid.count() * RandomKernel::kRegisters);
    for (auto& word : input) word = static_cast<std::uint32_t>(random());
    for (auto& word : before) word = static_cast<std::uint32_t>(random());
  }

  void Check(const std::vector<std::uint32_t>& out) const {
    for (std::uint32_t number = 0; number < grid.count(); ++number) {
      const auto at = passes::CtaAt({grid.x, grid.y, grid.z}, number);
      for (std::uint32_t tid = 0; tid < threads; ++tid) {
        const auto base = static_cast<std::ptrdiff_t>((std::size_t{number} * threads + tid) * RandomKernel::kRegisters);
        const std::vector<std::uint32_t> mine(before.begin() + base, before.begin() + base + RandomKernel::kRegisters);
        const std::vector<std::uint32_t> got(out.begin() + base, out.begin() + base + RandomKernel::kRegisters);
        const RandomPlace place{
            .tid = tid, .ntid = threads, .cta = {at.x, at.y, at.z}, .grid = {grid.x, grid.y, grid.z}};
        const auto want = kernel.Run(place, parameter, input, mine);
        if (got == want) continue;
        INFO("CTA " << number << " of (" << grid.x << "," << grid.y << "," << grid.z << "), thread " << tid << "\n"
                    << kernel.Ptx());
        REQUIRE(got == want);
      }
    }
  }
};

/// Runs slices that together are the grid, in a random order.
void RunShuffled(exec::Engine& engine, const exec::LaunchParams& whole, const exec::SlicedKernel& kernel,
                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const passes::GridShape grid{whole.grid.x, whole.grid.y, whole.grid.z};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> slices;
  for (std::uint64_t first = 0, count = 0; first < grid.count(); first += count) {
    count = std::min<std::uint64_t>(1 + random() % 9, passes::LongestSlice(grid, first));
    slices.emplace_back(first, count);
  }
  std::ranges::shuffle(slices, random);
  const std::uint64_t grid_id = engine.NewGridId();
  for (const auto& [first, count] : slices) {
    const auto fault = exec::RunSlice(engine, whole, kernel, first, count, grid_id);
    INFO(fault.text);
    REQUIRE(fault.kind == exec::FaultKind::kNone);
  }
}

/// False when the kernel is refused: one that loads from the same place again and again, and branches by what it finds,
/// might be waiting for another CTA.
bool CheckSeed(Executor& executor, passes::RewriteCache& rewrites, std::uint64_t seed) {
  const Case test(seed);
  INFO("seed " << seed);
  const std::string ptx = test.kernel.Ptx();
  DiagnosticSink sink;
  auto program = exec::Program::Load(ptx::ParseModule(ptx, sink), ptx, executor.memory());
  INFO(FormatDiagnostics(sink, "random.ptx", ptx));
  REQUIRE(!sink.has_errors());
  REQUIRE(program.ok());
  const auto sliced = exec::SlicedProgram(*program, executor.memory(), rewrites).Find("random_kernel");
  if (sliced->program == nullptr) {
    CHECK(sliced->why_whole.starts_with("a loop may wait for what another CTA writes (ld.global.u"));
    return false;
  }
  const auto in = executor.Upload(test.input), out = executor.Upload(test.before);
  ParamBlock params;
  params.Add(in).Add(out).Add(test.parameter);
  exec::LaunchParams whole;
  whole.program = *program;
  whole.kernel = (*program)->FindKernel("random_kernel");
  whole.grid = test.grid;
  whole.block = {test.threads, 1, 1};
  whole.params = params.bytes();
  RunShuffled(executor.engine(), whole, *sliced, seed);
  std::vector<std::uint32_t> got = test.before;
  executor.Download(out, got);
  executor.Free(in);
  executor.Free(out);
  test.Check(got);
  return true;
}

}  // namespace

TEST_CASE("RandomKernelsInSlices_AnyOrder_EqualHost") {
  Executor executor;
  passes::RewriteCache rewrites(4);
  const std::uint64_t wanted = RandomKernels(40);
  std::uint64_t seed = 0;
  for (std::uint64_t checked = 0; checked < wanted; checked += CheckSeed(executor, rewrites, ++seed))
    REQUIRE(seed < 3 * wanted + 10);
  std::printf("%llu kernels checked in slices, %llu refused\n", static_cast<unsigned long long>(wanted),
              static_cast<unsigned long long>(seed - wanted));
}

}  // namespace gridloom::test
