// Runs the instruction tables through the lifter alone, thread by thread.
#include <catch2/catch.hpp>
#include <iomanip>
#include <sstream>

#include "tests/sim/exec/instruction_case.h"
#include "tests/sim/exec/spmd_runner.h"

using namespace gridloom::exec;

namespace {

constexpr std::size_t kBatch = 24;
constexpr std::size_t kThreads = 3000;

std::string Describe(const InstructionCase& test, const Values& in, const Values& out, const Values& wanted) {
  std::ostringstream text;
  text << test.ptx << std::hex << "  in:";
  for (std::size_t i = 0; i < test.src.size(); ++i) text << ' ' << in.v[i];
  text << "  got:";
  for (std::size_t i = 0; i < test.dst.size(); ++i) text << ' ' << out.v[i];
  text << "  wanted:";
  for (std::size_t i = 0; i < test.dst.size(); ++i) text << ' ' << wanted.v[i];
  return text.str();
}

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
    RunBatch({cases.begin() + static_cast<std::ptrdiff_t>(start), cases.begin() + static_cast<std::ptrdiff_t>(end)}, options);
  }
}

}  // namespace

TEST_CASE("Lift_IntegerInstructions_MatchHost") { RunAll(IntegerCases()); }
TEST_CASE("Lift_LogicInstructions_MatchHost") { RunAll(LogicCases()); }
TEST_CASE("Lift_CompareInstructions_MatchHost") { RunAll(CompareCases()); }
TEST_CASE("Lift_FloatInstructions_MatchHost") { RunAll(FloatCases()); }
TEST_CASE("Lift_HalfInstructions_MatchHost") { RunAll(HalfCases()); }
TEST_CASE("Lift_ApproximateInstructions_WithinTheirError") { RunAll(ApproxCases()); }
TEST_CASE("Lift_Conversions_MatchHost") { RunAll(ConvertCases()); }

TEST_CASE("Lift_FloatInstructions_WithoutSse4_MatchHost") {
  CompileOptions options;
  options.cpu = "x86-64";
  RunAll(FloatCases(), options);
  RunAll(HalfCases(), options);
  RunAll(ApproxCases(), options);
  RunAll(ConvertCases(), options);
}
