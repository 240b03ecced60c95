#include "rewriter/analysis/address_analysis.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"
#include "tests/golden.h"
#include "tests/rewriter/analysis/describe.h"
#include "tests/rewriter/ptx/corpus.h"

namespace gridloom::analysis {

TEST_CASE("AddressAnalysis_Golden", "[analysis]") {
  gridloom::testing::CheckGoldenFolder("tests/golden/ranges", ".ptx", [](const std::string&, const std::string& input) {
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(input, sink);
    CHECK(FormatDiagnostics(sink, "input", input) == "");
    return gridloom::testing::GoldenSections{{"ranges", testing::DescribeRanges(*module)}};
  });
}

TEST_CASE("AddressAnalysis_Corpus_NeverFails", "[analysis]") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(file.text, sink);
    CHECK_FALSE((testing::DescribeRanges(*module).empty() && file.text.find(".entry") != std::string::npos &&
                 module->address_size == 64 && file.path.find("/hand/") == std::string::npos));
  }
}

TEST_CASE("AddressAnalysis_LoopsNestedDeeperThanAnyProgramHas_AreGivenUpByName", "[analysis]") {
  const auto reason = [](int depth) {
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .pred %p; .reg .b32 %r; mov.u32 %r, 0;\n";
    for (int i = 0; i < depth; ++i) text += "L" + std::to_string(i) + ": add.u32 %r, %r, 1;\n";
    for (int i = depth; i-- > 0;) text += "setp.lt.u32 %p, %r, 9; @%p bra L" + std::to_string(i) + ";\n";
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(text + "ret; }\n", sink);
    CHECK(!sink.has_errors());
    return AddressAnalysis(*module, CallGraph(*module), module->functions.front()).reason();
  };
  CHECK(reason(64).empty());
  CHECK(reason(65) == "its loops are nested more than 64 deep");
  CHECK(reason(20'000) == "its loops are nested more than 64 deep");
}

TEST_CASE("AddressAnalysis_ChainsLongerThanAnyProgramHas_AreGivenUp", "[analysis]") {
  // An index that is the same for all threads, after so many instructions that each take the last one's result.
  const auto ranges = [](int length) {
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) {\n"
        ".reg .b32 %r<3>; .reg .b64 %rd<4>;\nld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %r1;\n";
    for (int i = 0; i < length; ++i)
      text += "div.u32 %r2, %r2, " + std::to_string(i % 7 + 3) + "; xor.b32 %r2, %r2, %r1;\n";
    text += "mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1; ret; }\n";
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(text, sink);
    CHECK(!sink.has_errors());
    return testing::DescribeRanges(*module);
  };
  const std::string followed = ranges(100), given_up = ranges(60'000);
  INFO(followed << given_up);
  CHECK(followed.find(" ^ n)*4]") != std::string::npos);
  CHECK(given_up.find("p[?*4]") != std::string::npos);
}

// Each value of a chain takes on what those before it assume: a list for each would be long as the chain is.
TEST_CASE("ValueMath_ChainsOfChoices_RestOnFewAssumptions", "[analysis]") {
  SymbolPool pool;
  ValueMath math(pool);
  const Polynomial step = math.Any(32, kNoLoopInstance)->number;
  ValueRef value = math.Any(32, kNoLoopInstance);
  std::size_t most = 0, given_up = 0;
  for (std::int64_t i = 0; i < 2000; ++i) {
    const ValueRef sum = Number(value->number.Plus(step), 32, value->assumptions);
    value = math.Choice({sum, Number(Polynomial::Constant(i), 32)}, kNoLoopInstance);
    most = std::max(most, value->assumptions.size());
    given_up += value->assumptions.empty();
  }
  CHECK(most == ValueMath::kMaxAssumptions);
  CHECK(given_up > 2000 / ValueMath::kMaxAssumptions / 2);
}

}  // namespace gridloom::analysis
