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

}  // namespace gridloom::analysis
