// Runs the instruction tables through the lifter alone, thread by thread.
#include <catch2/catch.hpp>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/spmd_runner.h"

using namespace gridloom::exec;

namespace {

constexpr std::size_t kBatch = 24;
constexpr std::size_t kThreads = 3000;

void RunBatch(const std::vector<InstructionCase>& cases, const CompileOptions& options) {
  const std::string kernel = BatchKernel(cases);
  SpmdRunner runner(kernel, "batch", options);
  if (!runner.error().empty()) INFO(kernel);
  REQUIRE(runner.error() == "");
  std::vector<Values> in, out(cases.size() * kThreads);
  for (const InstructionCase& test : cases) {
    const std::vector<Values> inputs = InputsOf(test, kThreads);
    in.insert(in.end(), inputs.begin(), inputs.end());
  }
  struct {
    const Values* in;
    Values* out;
    std::uint32_t threads;
  } params{in.data(), out.data(), kThreads};
  for (std::uint32_t tid = 0; tid < kThreads; ++tid) runner.Run(&params, tid, kThreads);
  for (std::size_t n = 0; n < cases.size(); ++n) {
    int wrong = 0;
    for (std::size_t i = n * kThreads; i < (n + 1) * kThreads; ++i) {
      Values wanted;
      if (cases[n].check(in[i], out[i], wanted)) continue;
      if (++wrong <= 3) UNSCOPED_INFO(Describe(cases[n], in[i], out[i], wanted));
    }
    CHECK(wrong == 0);
  }
}

void RunAll(std::vector<InstructionCase> cases, const CompileOptions& options = {}) {
  for (std::size_t start = 0; start < cases.size(); start += kBatch) {
    const std::size_t end = std::min(start + kBatch, cases.size());
    RunBatch({cases.begin() + static_cast<std::ptrdiff_t>(start), cases.begin() + static_cast<std::ptrdiff_t>(end)},
             options);
  }
}

}  // namespace

TEST_CASE("Lift_Instructions_MatchHost") {
  for (const InstructionTable& table : InstructionTables()) {
    SECTION(std::string(table.name)) { RunAll(table.cases()); }
  }
}

// The floating-point code that stands in for what old CPUs lack.
TEST_CASE("Lift_FloatInstructions_WithoutSse4_MatchHost") {
  CompileOptions options;
  options.cpu = "x86-64";
  for (const auto cases : {FloatCases, HalfCases, ApproxCases, ConvertCases, PackedConvertCases})
    RunAll(cases(), options);
}
