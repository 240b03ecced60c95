// The text of modules whose launches are aggregated, refusals by name and place, and that whatever comes out is valid
// PTX. What programs do with it: tests/workloads/dtbl/aggregate_test.py.
#include "rewriter/passes/aggregate.h"

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

std::unique_ptr<ptx::Module> Parse(const std::string& name, const std::string& text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, name, text));
  REQUIRE(!sink.has_errors());
  return module;
}

Rewritten Aggregate(const std::string& name, const std::string& text) {
  auto rewritten = Run(*Pipeline::Parse("aggregate"), *Parse(name, text));
  REQUIRE(rewritten.ok());
  return std::move(rewritten).value();
}

void CheckValid(const ptx::Module& module) {
  const std::string text = ptx::PrintModule(module);
  DiagnosticSink sink;
  const auto again = ptx::ParseModule(text, sink);
  ptx::VerifyModule(*again, sink);
  INFO(FormatDiagnostics(sink, "aggregated", text) << text);
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

}  // namespace

TEST_CASE("Aggregate_Golden") {
  gridloom::testing::CheckGoldenFolder(
      "tests/golden/aggregate", ".ptx", [](const std::string& name, const std::string& input) {
        const Rewritten rewritten = Aggregate(name, input);
        CheckValid(*rewritten.module);
        gridloom::testing::GoldenSections sections;
        for (const KernelOutcome& kernel : rewritten.kernels) {
          sections["kernels"] += Describe(kernel);
          CHECK((kernel.status == KernelStatus::kRefused) == !kernel.reason.empty());
        }
        // What is refused stays as it was.
        const std::string before = ptx::PrintModule(*Parse(name, input)), after = ptx::PrintModule(*rewritten.module);
        if (name.find("refused") == std::string::npos) sections["aggregated"] = after;
        else CHECK(before == after);
        return sections;
      });
}

TEST_CASE("Aggregate_WholeCorpus_GivesValidModules") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    CheckValid(*Aggregate(file.path, file.text).module);
  }
}

// Lines left out, doubled and moved: whatever comes of it must not crash the pass, and what still verifies has to come
// out valid.
TEST_CASE("Aggregate_LinesMixedUp_NeverCrashes") {
  std::mt19937 random(7);
  unsigned valid_modules = 0, changed = 0;
  for (const std::string name : {"either", "forgotten", "kernel_form", "own_stream", "refused"}) {
    const std::string text = gridloom::testing::ReadFile("tests/golden/aggregate/" + name + ".ptx");
    std::vector<std::string> lines;
    std::istringstream in(text.substr(0, text.find("//---")));
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    for (int round = 0; round < 400; ++round) {
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
      if (sink.has_errors()) continue;
      const auto rewritten = Run(*Pipeline::Parse("aggregate"), *module);
      REQUIRE(rewritten.ok());
      if (!ptx::VerifyModule(*module, sink)) continue;
      ++valid_modules;
      for (const KernelOutcome& kernel : rewritten->kernels) changed += kernel.status == KernelStatus::kChanged;
      CheckValid(*rewritten->module);
    }
  }
  CHECK(valid_modules > 200);
  CHECK(changed > 200);
}

TEST_CASE("Aggregate_ModuleAggregatedTwice_IsTheSame") {
  const std::string text = gridloom::testing::ReadFile("tests/golden/aggregate/either.ptx");
  const std::string once = ptx::PrintModule(*Aggregate("once", text.substr(0, text.find("//---"))).module);
  CHECK(ptx::PrintModule(*Aggregate("twice", once).module) == once);
}

TEST_CASE("Aggregate_PartOfAProgram_KernelsHaveCopiesOfFunctions") {
  const std::string text = gridloom::testing::ReadFile("tests/golden/aggregate/own_stream.ptx");
  const auto rewritten = RunOnPart(*Pipeline::Parse("aggregate"), *Parse("part", text.substr(0, text.find("//---"))));
  REQUIRE(rewritten.ok());
  CheckValid(*rewritten->module);
  CHECK(rewritten->Find("calls")->status == KernelStatus::kChanged);
  CHECK(ptx::PrintModule(*rewritten->module).find("function__of_kernels") != std::string::npos);
}
