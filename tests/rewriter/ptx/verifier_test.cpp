#include "rewriter/ptx/verifier.h"

#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/parser.h"
#include "tests/golden.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::ptx;

TEST_CASE("Verifier_AcceptsTheWholeCorpus") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    DiagnosticSink sink;
    const auto module = ParseModule(file.text, sink);
    const bool ok = VerifyModule(*module, sink);
    INFO(FormatDiagnostics(sink, file.path, file.text));
    CHECK(ok);
  }
}

TEST_CASE("Verifier_GoldenRejects") {
  gridloom::testing::CheckGoldenFolder("tests/golden/ptx-verifier", ".ptx", [](const std::string& name, const std::string& input) {
    DiagnosticSink sink;
    const auto module = ParseModule(input, sink);
    INFO(FormatDiagnostics(sink, name, input));
    CHECK(!sink.has_errors());
    CHECK(VerifyModule(*module, sink) != name.starts_with("bad_"));
    return gridloom::testing::GoldenSections{{"diagnostics", FormatDiagnostics(sink, name, input)}};
  });
}

TEST_CASE("Verifier_UnknownWordsOfALaterVersion_AreWarnings") {
  const std::string body =
      "\n.target sm_90\n.address_size 64\n.entry k() { .reg .b32 %r<4>; quux.u32 %r1, %r2; add.odd.u32 %r1, %r2, %r3; "
      "ret; }\n";
  for (const auto& [version, ok] : {std::pair("9.0", false), std::pair("9.9", true)}) {
    DiagnosticSink sink;
    const auto module = ParseModule(".version " + std::string(version) + body, sink);
    CHECK(VerifyModule(*module, sink) == ok);
    CHECK(sink.diagnostics().size() == 2);
  }
}

TEST_CASE("Verifier_CompiledModules_MayKnowMoreThanTheTables_AndNothingElse") {
  const auto verify = [](const std::string& line) {
    DiagnosticSink sink;
    const auto module = ParseModule(
        ".version 8.0\n.target sm_70\n.address_size 64\n.entry k() { .reg .b32 %r<4>; .reg .pred %p<2>; " + line + " ret; }\n", sink);
    REQUIRE(!sink.has_errors());
    const bool good = VerifyModule(*module, sink, PtxOrigin::kCompiled);
    return std::pair(good, sink.diagnostics().size());
  };
  CHECK(verify("mov.u32 %r1, %r2;") == std::pair(true, std::size_t{0}));
  CHECK(verify("quux.u32 %r1, %r2;") == std::pair(true, std::size_t{1}));
  CHECK(verify("add.odd.u32 %r1, %r2, %r3;") == std::pair(true, std::size_t{1}));
  CHECK(verify("mapa.u32 %r1, %r2, 0;") == std::pair(true, std::size_t{1}));  // of sm_90
  CHECK(verify("@%nobody bra L; L:").first == false);
  CHECK(verify("@%r1 bra L; L:").first == false);
  CHECK(verify("@%nobody quux.u32 %r1, %r2;").first == false);
  CHECK(verify("mov.u32 %r1, %nobody;").first == false);
  CHECK(verify("add.u32 %r1, %r2;").first == false);
}

TEST_CASE("Verifier_StopsAtTwentyErrors") {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n";
  for (int i = 0; i < 1000; ++i) text += "mov.u32 %x, 1;\n";
  DiagnosticSink sink;
  const auto module = ParseModule(text + "}\n", sink);
  CHECK(!VerifyModule(*module, sink));
  CHECK(sink.diagnostics().size() == DiagnosticSink::kMaxErrors);
}
