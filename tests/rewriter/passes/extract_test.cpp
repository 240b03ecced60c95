// One kernel as a module of its own: text, refusals, and that what comes out of the corpus is valid PTX. That it
// computes the same, tests/e2e/broker_test.py checks (`real`).
#include "rewriter/passes/extract.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/linker.h"
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

/// 0x10000000, 0x10001000 …
VariableAddresses AddressesOf(const std::vector<std::string>& names) {
  VariableAddresses addresses;
  for (const std::string& name : names) addresses.emplace(name, 0x10000000 + 0x1000 * addresses.size());
  return addresses;
}

}  // namespace

TEST_CASE("Extract_Golden") {
  gridloom::testing::CheckGoldenFolder("tests/golden/extract", ".ptx",
                                       [](const std::string& name, const std::string& input) {
                                         const auto module = Parse(name, input);
                                         gridloom::testing::GoldenSections sections;
                                         for (const ptx::Function& function : module->functions) {
                                           if (!function.is_entry || function.body == nullptr) continue;
                                           const std::string kernel(function.name);
                                           const auto variables = VariablesOf(*module, kernel);
                                           if (!variables.ok()) {
                                             sections["refused"] += kernel + ": " + variables.error().message + "\n";
                                             continue;
                                           }
                                           const auto alone = ExtractKernel(*module, kernel, AddressesOf(*variables));
                                           REQUIRE(alone.ok());
                                           sections[kernel] = ptx::PrintModule(**alone);
                                         }
                                         return sections;
                                       });
}

TEST_CASE("Extract_WithoutAnAddress_IsRefused") {
  const auto module = Parse("text", R"(.version 7.0
.target sm_70
.address_size 64
.global .u32 count;
.entry k() { .reg .u32 %r; ld.global.u32 %r, [count]; ret; })");
  CHECK(ExtractKernel(*module, "k", {{"count", 16}}).ok());
  const auto without = ExtractKernel(*module, "k", {{"other", 16}});
  REQUIRE(!without.ok());
  CHECK(without.error().message.find("count") != std::string::npos);
  CHECK(!VariablesOf(*module, "nobody").ok());
}

TEST_CASE("Extract_FromALinkedModule_HasTheTargetOfThePartsThatAreLeft") {
  const auto part = [](const std::string& name, const std::string& sm) {
    return ptx::LinkInput{name, Parse(name, ".version 8.0\n.target sm_" + sm + "\n.address_size 64\n.visible .entry " +
                                                name + "() { ret; }")};
  };
  std::vector<ptx::LinkInput> parts;
  parts.push_back(part("old_one", "70"));
  parts.push_back(part("new_one", "90"));
  const auto linked = ptx::LinkModules(std::move(parts), [](std::string_view) { return false; });
  REQUIRE(linked.ok());
  REQUIRE((*linked)->sm() == 90);
  CHECK(ExtractKernel(**linked, "old_one", {}).value()->sm() == 70);
  CHECK(ExtractKernel(**linked, "new_one", {}).value()->sm() == 90);
}

TEST_CASE("Extract_WholeCorpus_GivesValidModulesOfOneKernelThatNameNoVariable") {
  unsigned extracted = 0;
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    const auto module = Parse(file.path, file.text);
    for (const ptx::Function& function : module->functions) {
      if (!function.is_entry || function.body == nullptr) continue;
      const std::string kernel(function.name);
      const auto variables = VariablesOf(*module, kernel);
      if (!variables.ok()) continue;
      const auto alone = ExtractKernel(*module, kernel, AddressesOf(*variables));
      REQUIRE(alone.ok());
      const std::string text = ptx::PrintModule(**alone);
      DiagnosticSink sink;
      const auto again = ptx::ParseModule(text, sink);
      ptx::VerifyModule(*again, sink);
      INFO(FormatDiagnostics(sink, kernel, text));
      CHECK(!sink.has_errors());
      CHECK(ptx::PrintModule(*again) == text);
      unsigned kernels = 0;
      for (const ptx::Function& one : again->functions) kernels += one.is_entry;
      CHECK(kernels == 1);
      CHECK(VariablesOf(*again, kernel).value().empty());
      ++extracted;
    }
  }
  CHECK(extracted >= 20);
}
