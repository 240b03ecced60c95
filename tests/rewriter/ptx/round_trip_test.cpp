// Parse, print, parse again: a fixed point on the whole corpus, whatever the line ends.
#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "tests/golden.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::ptx;

namespace {

std::string ParseAndPrint(const std::string& path, const std::string& text) {
  DiagnosticSink sink;
  const auto module = ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, path, text));
  CHECK(sink.diagnostics().empty());
  return PrintModule(*module);
}

}  // namespace

TEST_CASE("Corpus_ParsePrintParse_IsAFixedPoint") {
  const auto corpus = ptx::testing::LoadCorpus();
  REQUIRE(corpus.size() > 30);
  for (const auto& file : corpus) {
    INFO(file.path);
    const std::string once = ParseAndPrint(file.path, file.text);
    CHECK(ParseAndPrint(file.path, once) == once);
  }
}

TEST_CASE("Corpus_WithCarriageReturns_PrintsTheSame") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    if (file.text.find(".section") != std::string::npos) continue;  // sections are kept verbatim
    std::string with_returns;
    for (const char c : file.text) with_returns += c == '\n' ? "\r\n" : std::string(1, c);
    INFO(file.path);
    CHECK(ParseAndPrint(file.path, with_returns) == ParseAndPrint(file.path, file.text));
  }
}

TEST_CASE("Corpus_CutAnywhere_NeverCrashes") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    const std::size_t step = file.text.size() / 40 + 1;
    for (std::size_t size = 0; size < file.text.size(); size += step) {
      DiagnosticSink sink;
      PrintModule(*ParseModule(std::string_view(file.text).substr(0, size), sink));
      CHECK(sink.diagnostics().size() <= 2 * DiagnosticSink::kMaxErrors);
    }
  }
}

TEST_CASE("Golden_PrintedTextAndDiagnostics") {
  gridloom::testing::CheckGoldenFolder("tests/golden/ptx", ".ptx",
                                       [](const std::string& name, const std::string& input) {
                                         DiagnosticSink sink;
                                         const auto module = ParseModule(input, sink);
                                         gridloom::testing::GoldenSections sections;
                                         CHECK(sink.has_errors() == name.starts_with("bad_"));
                                         if (sink.has_errors()) {
                                           sections["diagnostics"] = FormatDiagnostics(sink, name, input);
                                         } else {
                                           sections["printed"] = PrintModule(*module);
                                         }
                                         return sections;
                                       });
}
