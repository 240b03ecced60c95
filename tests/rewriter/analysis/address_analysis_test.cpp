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
    CHECK_FALSE((testing::DescribeRanges(*module).empty() && file.text.find(".entry") != std::string::npos && module->address_size == 64 &&
                 file.path.find("/hand/") == std::string::npos));
  }
}

TEST_CASE("AddressAnalysis_LoopsNestedDeeperThanAnyProgramHas_AreGivenUpByName", "[analysis]") {
  const auto reason = [](int depth) {
    std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .pred %p; .reg .b32 %r; mov.u32 %r, 0;\n";
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

}  // namespace gridloom::analysis
