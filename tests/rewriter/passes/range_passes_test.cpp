// profile and release as text: what is added to a module, or what a kernel becomes.
#include <catch2/catch.hpp>

#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "tests/golden.h"
#include "tests/rewriter/ptx/corpus.h"

namespace gridloom::passes {
namespace {

std::unique_ptr<ptx::Module> Parse(const std::string& text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, "input", text));
  REQUIRE_FALSE(sink.has_errors());
  return module;
}

/// The rewritten module, which must verify, and what was said of its kernels.
std::string Rewrite(const std::string& input, const std::string& pipeline) {
  const auto module = Parse(input);
  const auto passes = Pipeline::Parse(pipeline);
  REQUIRE(passes.ok());
  const auto rewritten = Run(*passes, *module);
  REQUIRE(rewritten.ok());
  std::string text = ptx::PrintModule(*rewritten->module);
  const auto again = Parse(text);
  DiagnosticSink sink;
  ptx::VerifyModule(*again, sink);
  CHECK(FormatDiagnostics(sink, "output", text) == "");
  CHECK(ptx::PrintModule(*again) == text);
  for (const KernelOutcome& kernel : rewritten->kernels) {
    if (kernel.status != KernelStatus::kRefused) continue;
    text += "// " + kernel.kernel + " refused: " + kernel.reason + " (line " + std::to_string(kernel.loc.line) + ")\n";
  }
  return text;
}

void CheckFolder(const std::string& pass) {
  gridloom::testing::CheckGoldenFolder(
      "tests/golden/" + pass, ".ptx", [&](const std::string&, const std::string& input) {
        return gridloom::testing::GoldenSections{{pass, Rewrite(input, pass)},
                                                 {pass + "-strided", Rewrite(input, pass + "-strided")}};
      });
}

}  // namespace

TEST_CASE("ProfilePass_Golden", "[passes]") { CheckFolder("profile"); }
TEST_CASE("ReleasePass_Golden", "[passes]") { CheckFolder("release"); }

TEST_CASE("ProfilePass_NoRoomForTheBlock_RefusesThatKernelOnly", "[passes]") {
  const auto module = Parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry large(.param .b8 p[4344]) { ret; }\n.entry small(.param "
      ".b8 p[4340]) { ret; "
      "}\n");
  const auto rewritten = Run(*Pipeline::Parse("profile"), *module);
  REQUIRE(rewritten.ok());
  CHECK(rewritten->Find("large")->status == KernelStatus::kRefused);
  CHECK(rewritten->Find("small")->status == KernelStatus::kUnchanged);
  CHECK(rewritten->added.size() == 1);
}

TEST_CASE("RangePasses_Corpus_OutputVerifies", "[passes]") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    // What people write by hand need not verify, and must do no harm.
    if (file.path.find("/hand/") != std::string::npos) {
      CHECK(Run(*Pipeline::Parse("profile-strided,release"), *Parse(file.text)).ok());
      continue;
    }
    Rewrite(file.text, "profile-strided,release");
    Rewrite(file.text, "slice,profile,release-strided");
    Rewrite(file.text, "release,slice");
  }
}

}  // namespace gridloom::passes
