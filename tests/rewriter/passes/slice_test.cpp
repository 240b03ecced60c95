// The text of sliced modules, refusals, and that whatever comes out is valid PTX. What it computes:
// tests/sim/exec/slice_*.
#include "rewriter/passes/slice.h"

#include <catch2/catch.hpp>
#include <random>
#include <sstream>

#include "rewriter/passes/extract.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/registry.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "tests/golden.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::passes;

namespace {

Rewritten Slice(const std::string& name, const std::string& text) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, name, text));
  REQUIRE(!sink.has_errors());
  auto rewritten = Run(*Pipeline::Parse("slice"), *module);
  REQUIRE(rewritten.ok());
  return std::move(rewritten).value();
}

std::string Describe(const KernelOutcome& kernel) {
  static constexpr std::string_view kStatus[] = {"unchanged", "changed", "refused"};
  std::string text = kernel.kernel + ": " + std::string(kStatus[static_cast<std::size_t>(kernel.status)]);
  if (kernel.status == KernelStatus::kRefused)
    text += ": " + kernel.reason + " [line " + std::to_string(kernel.loc.line) + "]";
  for (const HiddenParam& hidden : kernel.hidden)
    text += " " + std::string(Info(hidden.role).text) + "@" + std::to_string(hidden.offset);
  return text + "\n";
}

}  // namespace

TEST_CASE("Slice_Golden") {
  gridloom::testing::CheckGoldenFolder("tests/golden/slice", ".ptx",
                                       [](const std::string& name, const std::string& input) {
                                         const Rewritten rewritten = Slice(name, input);
                                         gridloom::testing::GoldenSections sections;
                                         sections["sliced"] = ptx::PrintModule(*rewritten.module);
                                         for (const KernelOutcome& kernel : rewritten.kernels)
                                           sections["kernels"] += Describe(kernel);
                                         return sections;
                                       });
}

TEST_CASE("Slice_WholeCorpus_GivesValidModulesThatReadNoIndex") {
  unsigned changed = 0;
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    const Rewritten rewritten = Slice(file.path, file.text);
    const std::string text = ptx::PrintModule(*rewritten.module);
    DiagnosticSink sink;
    const auto again = ptx::ParseModule(text, sink);
    ptx::VerifyModule(*again, sink);
    INFO(FormatDiagnostics(sink, "sliced", text));
    CHECK(!sink.has_errors());
    CHECK(ptx::PrintModule(*again) == text);
    for (const KernelOutcome& kernel : rewritten.kernels) {
      changed += kernel.status == KernelStatus::kChanged;
      CHECK((kernel.status == KernelStatus::kRefused) == !kernel.reason.empty());
      CHECK((kernel.status == KernelStatus::kChanged) == !kernel.hidden.empty());
    }
  }
  CHECK(changed >= 10);
}

// Lines left out, doubled and moved: most of what comes of it no assembler would take, and none of it may crash a pass.
// What still verifies has to come out valid.
TEST_CASE("Slice_CorpusWithLinesMixedUp_NeverCrashes") {
  std::mt19937 random(11);
  unsigned rewritten_modules = 0, valid_modules = 0, extracted = 0;
  for (const auto& file : ptx::testing::LoadCorpus()) {
    std::vector<std::string> lines;
    std::istringstream in(file.text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    if (lines.size() > 1500) continue;
    for (int round = 0; round < 12; ++round) {
      std::vector<std::string> mixed = lines;
      for (int change = 0; change < 1 + round; ++change) {
        const std::size_t at = 4 + random() % (mixed.size() - 4);
        switch (random() % 3) {
          case 0: mixed.erase(mixed.begin() + static_cast<std::ptrdiff_t>(at)); break;
          case 1:
            mixed.insert(mixed.begin() + static_cast<std::ptrdiff_t>(at), mixed[4 + random() % (mixed.size() - 4)]);
            break;
          default: std::swap(mixed[at], mixed[4 + random() % (mixed.size() - 4)]); break;
        }
      }
      std::string text;
      for (const std::string& line : mixed) text += line + "\n";
      DiagnosticSink sink;
      const auto module = ptx::ParseModule(text, sink);
      if (sink.has_errors()) continue;
      const auto rewritten = Run(*Pipeline::Parse("slice"), *module);
      if (!rewritten.ok()) continue;
      ++rewritten_modules;
      const bool verified = ptx::VerifyModule(*module, sink);
      for (const KernelOutcome& kernel : rewritten->kernels) {
        const auto alone = ExtractKernel(*rewritten->module, kernel.kernel, {});
        if (!alone.ok() || !verified) continue;
        ++extracted;
        DiagnosticSink alone_sink;
        const std::string alone_text = ptx::PrintModule(**alone);
        const bool alone_valid = ptx::VerifyModule(*ptx::ParseModule(alone_text, alone_sink), alone_sink);
        INFO(file.path << "\n" << FormatDiagnostics(alone_sink, "alone", alone_text));
        REQUIRE(alone_valid);
      }
      if (!verified) continue;
      ++valid_modules;
      const std::string printed = ptx::PrintModule(*rewritten->module);
      DiagnosticSink again;
      const bool valid = ptx::VerifyModule(*ptx::ParseModule(printed, again), again);
      INFO(file.path << "\n" << FormatDiagnostics(again, "sliced", printed));
      REQUIRE(valid);
    }
  }
  CHECK(rewritten_modules > 100);
  CHECK(valid_modules > 30);
  CHECK(extracted > 30);
}

TEST_CASE("Slice_ModuleSlicedTwice_AddsNothingThatIsNamedTheSame") {
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .u32 %r;\nmov.u32 %r, %ctaid.x;\nret;\n}\n";
  const std::string once = ptx::PrintModule(*Slice("k", text).module);
  const std::string twice = ptx::PrintModule(*Slice("k", once).module);
  DiagnosticSink sink;
  CHECK(ptx::VerifyModule(*ptx::ParseModule(twice, sink), sink));
}
