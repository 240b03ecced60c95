// The text of modules whose launches are consolidated, refusals by name and place, and that whatever comes out is valid
// PTX. What programs do with it: tests/workloads/dtbl/consolidate_test.py, tests/apps/consolidated_launches.cu.
#include "rewriter/passes/consolidate.h"

#include <catch2/catch.hpp>
#include <random>
#include <sstream>

#include "rewriter/passes/part.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "tests/golden.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::passes;

namespace {

constexpr const char* kForms[] = {"warp", "block", "grid", "block:64"};

std::unique_ptr<ptx::Module> Parse(const std::string& name, const std::string& text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, name, text));
  REQUIRE(!sink.has_errors());
  return module;
}

Rewritten Consolidate(const std::string& form, const std::string& name, const std::string& text) {
  const ConsolidatePass pass(*ParseConsolidateOptions(form));
  auto rewritten = Run(Pipeline({&pass}), *Parse(name, text));
  REQUIRE(rewritten.ok());
  return std::move(rewritten).value();
}

void CheckValid(const ptx::Module& module) {
  const std::string text = ptx::PrintModule(module);
  DiagnosticSink sink;
  const auto again = ptx::ParseModule(text, sink);
  ptx::VerifyModule(*again, sink);
  INFO(FormatDiagnostics(sink, "consolidated", text) << text);
  CHECK(!sink.has_errors());
  CHECK(ptx::PrintModule(*again) == text);
}

std::string Describe(const KernelOutcome& kernel) {
  static constexpr std::string_view kStatus[] = {"unchanged", "changed", "refused"};
  std::string text = kernel.kernel + ": " + std::string(kStatus[static_cast<std::size_t>(kernel.status)]) + "\n";
  for (const PlaceReport& place : kernel.places) {
    text += "  line " + std::to_string(place.loc.line) +
            (place.function == kernel.kernel ? "" : " of " + place.function) + (place.changed ? ": yes" : ": no");
    if (!place.reason.empty()) text += (place.changed ? ", unless " : ": ") + place.reason;
    text += "\n";
  }
  return text;
}

std::string ReadInput(const std::string& name) {
  const std::string text = gridloom::testing::ReadFile("tests/golden/" + name + ".ptx");
  return text.substr(0, text.find("//---"));
}

}  // namespace

TEST_CASE("Consolidate_Golden") {
  gridloom::testing::CheckGoldenFolder(
      "tests/golden/consolidate", ".ptx", [](const std::string& name, const std::string& input) {
        std::string form = "warp";
        for (const std::string scope : {"block", "grid"}) {
          if (name.find(scope) != std::string::npos) form = scope;
        }
        if (name.find("threshold") != std::string::npos || name.find("not_serial") != std::string::npos)
          form = "warp:64";
        const Rewritten rewritten = Consolidate(form, name, input);
        CheckValid(*rewritten.module);
        gridloom::testing::GoldenSections sections;
        for (const KernelOutcome& kernel : rewritten.kernels) {
          sections["kernels"] += Describe(kernel);
          CHECK((kernel.status == KernelStatus::kRefused) == !kernel.reason.empty());
        }
        // What is refused stays as it was.
        const std::string before = ptx::PrintModule(*Parse(name, input)), after = ptx::PrintModule(*rewritten.module);
        if (name.find("refused") != std::string::npos) CHECK(before == after);
        else if (name.find("not_serial") == std::string::npos) sections["consolidated"] = after;
        return sections;
      });
}

TEST_CASE("Consolidate_WholeCorpus_GivesValidModules") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    for (const char* const form : kForms) CheckValid(*Consolidate(form, file.path, file.text).module);
  }
}

// Lines left out, doubled and moved: whatever comes of it must not crash the pass, and what still verifies has to come
// out valid.
TEST_CASE("Consolidate_LinesMixedUp_NeverCrashes") {
  std::mt19937 random(11);
  unsigned valid_modules = 0, changed = 0;
  for (const std::string name :
       {"consolidate/warp", "consolidate/refused", "consolidate/not_serial", "aggregate/either"}) {
    std::vector<std::string> lines;
    std::istringstream in(ReadInput(name));
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    for (int round = 0; round < 500; ++round) {
      std::vector<std::string> mixed = lines;
      for (int change = 0; change < 1 + round % 4; ++change) {
        const std::size_t at = 4 + random() % (mixed.size() - 4);
        switch (random() % 3) {
          case 0: mixed.erase(mixed.begin() + static_cast<std::ptrdiff_t>(at)); break;
          case 1:
            mixed.insert(mixed.begin() + static_cast<std::ptrdiff_t>(at), mixed[4 + random() % (mixed.size() - 4)]);
            break;
          default: std::swap(mixed[at], mixed[4 + random() % (mixed.size() - 4)]); break;
        }
      }
      std::string whole;
      for (const std::string& line : mixed) whole += line + "\n";
      DiagnosticSink sink;
      const auto module = ptx::ParseModule(whole, sink);
      if (sink.has_errors() || !ptx::VerifyModule(*module, sink)) continue;
      const Rewritten rewritten = Consolidate(kForms[round % 4], "mixed", whole);
      ++valid_modules;
      for (const KernelOutcome& kernel : rewritten.kernels) changed += kernel.status == KernelStatus::kChanged;
      INFO(whole);
      CheckValid(*rewritten.module);
    }
  }
  CHECK(valid_modules > 200);
  CHECK(changed > 200);
}

TEST_CASE("Consolidate_ModuleConsolidatedTwice_IsTheSame") {
  const std::string once = ptx::PrintModule(*Consolidate("block", "once", ReadInput("consolidate/block")).module);
  CHECK(ptx::PrintModule(*Consolidate("block", "twice", once).module) == once);
}

TEST_CASE("Consolidate_AggregatedFirst_IsConsolidated") {
  const auto aggregated = Run(*Pipeline::Parse("aggregate"), *Parse("warp", ReadInput("consolidate/warp")));
  REQUIRE(aggregated.ok());
  const Rewritten rewritten = Consolidate("warp", "aggregated", ptx::PrintModule(*aggregated->module));
  CheckValid(*rewritten.module);
  CHECK(rewritten.Find("parent")->status == KernelStatus::kChanged);
  CHECK(rewritten.added.size() == 1);
}

TEST_CASE("Consolidate_PartOfAProgram_GivesAValidModule") {
  for (const char* const form : kForms) {
    const ConsolidatePass pass(*ParseConsolidateOptions(form));
    const auto rewritten = RunOnPart(Pipeline({&pass}), *Parse("part", ReadInput("consolidate/warp")));
    REQUIRE(rewritten.ok());
    CheckValid(*rewritten->module);
    CHECK(rewritten->Find("parent")->status == KernelStatus::kChanged);
  }
}

TEST_CASE("ParseConsolidateOptions_TakesScopesAndThresholds") {
  CHECK(ParseConsolidateOptions("grid")->scope == ConsolidateScope::kGrid);
  CHECK(ParseConsolidateOptions("block:64")->threshold == 64);
  for (const char* const text : {"", "lane", "warp:", "warp:x", "warp:-1", "warp:65537", "warp:1:2", ":4"}) {
    INFO(text);
    CHECK(!ParseConsolidateOptions(text).ok());
  }
}
