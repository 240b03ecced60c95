// Runs the instruction tables through lifter, vectoriser and engine: whole warps, a ragged one at the end. Compiling
// all of them takes most of a minute, so only every fourth runs unless GRIDLOOM_TEST_FULL is set, and every eighth on
// processors with less (GRIDLOOM_TEST_CPU), for which there is more code. exec_lift_instruction_test always runs all,
// without the vectoriser.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/sim/exec/executor_fixture.h"
#include "tests/sim/exec/instruction_case.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr std::size_t kBatch = 12;
constexpr std::uint32_t kThreads = 2000;
constexpr std::uint32_t kBlock = 96;

void RunBatch(test::Executor& executor, const std::vector<InstructionCase>& cases) {
  std::vector<Values> in, out(cases.size() * kThreads);
  for (const InstructionCase& one : cases) {
    const std::vector<Values> inputs = InputsOf(one, kThreads);
    in.insert(in.end(), inputs.begin(), inputs.end());
  }
  const std::uint64_t in_device = executor.Upload(in), out_device = executor.Upload(out);
  const LaunchFault fault =
      executor.Launch(BatchKernel(cases), "batch", {(kThreads + kBlock - 1) / kBlock, 1, 1}, {kBlock, 1, 1},
                      test::ParamBlock().Add(in_device).Add(out_device).Add(kThreads));
  INFO(fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  executor.Download(out_device, out);
  for (std::size_t n = 0; n < cases.size(); ++n) {
    int wrong = 0;
    for (std::size_t i = n * kThreads; i < (n + 1) * kThreads; ++i) {
      Values wanted;
      if (cases[n].check(in[i], out[i], wanted)) continue;
      if (++wrong <= 3) UNSCOPED_INFO(Describe(cases[n], in[i], out[i], wanted));
    }
    CHECK(wrong == 0);
  }
  executor.Free(in_device);
  executor.Free(out_device);
}

}  // namespace

TEST_CASE("Executor_Instructions_MatchHost") {
  const std::size_t step = std::getenv("GRIDLOOM_TEST_FULL") ? 1 : std::getenv("GRIDLOOM_TEST_CPU") ? 8 : 4;
  for (const InstructionTable& table : InstructionTables()) {
    SECTION(std::string(table.name)) {
      test::Executor executor;
      std::vector<InstructionCase> cases;
      const std::vector<InstructionCase> all = table.cases();
      for (std::size_t i = 0; i < all.size(); i += step) cases.push_back(all[i]);
      for (std::size_t start = 0; start < cases.size(); start += kBatch) {
        const std::size_t end = std::min(start + kBatch, cases.size());
        RunBatch(executor, {cases.begin() + static_cast<std::ptrdiff_t>(start),
                            cases.begin() + static_cast<std::ptrdiff_t>(end)});
      }
    }
  }
}
