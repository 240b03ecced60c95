#include "rewriter/passes/pipeline.h"

#include <catch2/catch.hpp>
#include <set>

#include "rewriter/passes/launch_fills.h"
#include "rewriter/passes/registry.h"
#include "rewriter/passes/rewrite_cache.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "tests/growth.h"

using namespace gridloom;
using namespace gridloom::passes;

namespace {

constexpr std::string_view kTwoKernels =
    ".version 8.0\n.target sm_90\n.address_size 64\n.entry first(.param .u8 p) { ret; }\n.entry second() { exit; }\n";

std::unique_ptr<ptx::Module> Parse(std::string_view text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  REQUIRE(!sink.has_errors());
  return module;
}

/// Appends a parameter to every kernel whose name is not `refused`.
class AppendingPass final : public Pass {
 public:
  AppendingPass(std::string_view name, HiddenRole role, std::string_view refused)
      : name_(name), role_(role), refused_(refused) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "for tests"; }
  Result<PassReport> Run(ptx::Module& module) const override {
    ++runs;
    PassReport report = StartReport(module);
    for (KernelReport& kernel : report.kernels) {
      if (kernel.kernel == refused_) {
        kernel.status = KernelStatus::kRefused;
        kernel.reason = "its name is " + kernel.kernel;
        continue;
      }
      GL_TRY(param, AppendHidden(module, *module.FindFunction(kernel.kernel), role_, kernel));
      CHECK(param->space == ptx::StateSpace::kParam);
      kernel.status = KernelStatus::kChanged;
    }
    return report;
  }
  mutable int runs = 0;

 private:
  std::string_view name_;
  HiddenRole role_;
  std::string_view refused_;
};

}  // namespace

TEST_CASE("AllPasses_NamesAreUnique_AndFound") {
  std::set<std::string_view> names;
  for (const auto& pass : AllPasses()) {
    CHECK(names.insert(pass->name()).second);
    CHECK(FindPass(pass->name()) == pass.get());
    CHECK(!pass->summary().empty());
  }
  CHECK(FindPass("none-of-that-name") == nullptr);
}

TEST_CASE("PipelineParse_UnknownOrEmptyName_IsAnErrorThatNamesIt") {
  const auto unknown = Pipeline::Parse("sliec");
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().message.starts_with("no pass is named 'sliec'"));
  CHECK(!Pipeline::Parse("").ok());
  for (const auto& pass : AllPasses()) {
    const std::string name(pass->name());
    const auto parsed = Pipeline::Parse(name);
    REQUIRE(parsed.ok());
    CHECK(parsed->text() == name);
    const auto twice = Pipeline::Parse(name + "," + name);
    REQUIRE(!twice.ok());
    CHECK(twice.error().message == "pass '" + name + "' stands twice in '" + name + "," + name + "'");
    CHECK(!Pipeline::Parse(name + ",").ok());
  }
}

TEST_CASE("PipelineParse_ReleaseThatSeesOtherKernelsThanProfile_IsAnError") {
  for (const char* text : {"profile,release", "profile-strided,release-strided,slice", "slice,profile,release",
                           "slice,release", "profile,profile-strided,release", "profile,slice"}) {
    CHECK(Pipeline::Parse(text).ok());
  }
  CHECK(Pipeline::Parse("release,profile").error().message == "'release' has to follow 'profile'");
  CHECK(Pipeline::Parse("profile-strided,slice,release-strided").error().message ==
        "'release-strided' has to follow 'profile-strided' at once: both have to see the kernels that 'slice' changes");
}

TEST_CASE("Run_TwoPasses_OutcomesAreMergedAndTheOriginalIsUntouched") {
  const auto module = Parse(kTwoKernels);
  const std::string before = ptx::PrintModule(*module);
  const AppendingPass one("one", HiddenRole::kGridX, ""), two("two", HiddenRole::kGridId, "second");
  const auto result = Run(Pipeline({&one, &two}), *module);
  REQUIRE(result.ok());
  CHECK(ptx::PrintModule(*module) == before);
  REQUIRE(result->kernels.size() == 2);
  const KernelOutcome& first = *result->Find("first");
  CHECK(first.status == KernelStatus::kChanged);
  REQUIRE(first.hidden.size() == 2);
  CHECK(first.hidden[0].role == HiddenRole::kGridX);
  CHECK(first.hidden[0].offset == 4);  // behind the .u8
  CHECK(first.hidden[1].offset == 8);
  const KernelOutcome& second = *result->Find("second");
  CHECK(second.status == KernelStatus::kRefused);
  CHECK(second.refused_by == "two");
  CHECK(second.reason == "its name is second");
  CHECK(result->Find("third") == nullptr);
}

TEST_CASE("AppendHidden_NoRoomLeft_IsAnError") {
  const auto module = Parse(".version 8.0\n.target sm_70\n.address_size 64\n.entry k(.param .b8 p[4350]) { ret; }\n");
  KernelReport report;
  const auto param = AppendHidden(*module, *module->FindFunction("k"), HiddenRole::kGridX, report);
  REQUIRE(!param.ok());
  CHECK(report.hidden.empty());
}

TEST_CASE("AppendHidden_SameRoleTwice_GivesTheSameParameter") {
  const auto module = Parse(kTwoKernels);
  ptx::Function& kernel = *module->FindFunction("first");
  KernelReport report;
  const auto one = AppendHidden(*module, kernel, HiddenRole::kGridX, report);
  const auto two = AppendHidden(*module, kernel, HiddenRole::kGridX, report);
  CHECK(*one == *two);
  CHECK(kernel.params.size() == 2);
}

TEST_CASE("RewriteCache_SameTextAndPipeline_RewritesOnce") {
  const auto module = Parse(kTwoKernels);
  const AppendingPass pass("one", HiddenRole::kGridX, ""), other("two", HiddenRole::kGridX, "");
  RewriteCache cache(2);
  const auto first = cache.Get(Pipeline({&pass}), *module, ContentKey(kTwoKernels));
  const auto second = cache.Get(Pipeline({&pass}), *module, ContentKey(kTwoKernels));
  REQUIRE(first.ok());
  CHECK(first->rewritten == second->rewritten);
  CHECK(pass.runs == 1);
  const auto by_other = cache.Get(Pipeline({&other}), *module, ContentKey(kTwoKernels));
  CHECK(by_other->key != first->key);
  const std::string shifted = "\n" + std::string(kTwoKernels);  // other lines, same module
  const auto of_shifted = cache.Get(Pipeline({&pass}), *Parse(shifted), ContentKey(shifted));
  CHECK(of_shifted->key != first->key);
  CHECK(pass.runs == 2);
  CHECK(cache.Get(Pipeline({&pass}), *module, ContentKey(kTwoKernels)).ok());  // was the one used longest ago
  CHECK(pass.runs == 3);
}

TEST_CASE("LaunchFills_MarkedModule_HiddenParametersAreFoundByNameInTheText") {
  const auto module = Parse(
      ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 k_gl_grid_x;\n.entry k(.param .u8 p, .param .u32 "
      "k_gl_shift_x) {\n.reg "
      ".b32 %r<3>;\nmov.u32 %r1, %ctaid.y;\nmov.u32 %r2, %nctaid.x;\nret;\n}\n.entry plain(.param .u32 "
      "plain_gl_nothing) { ret; }\n");
  const auto rewritten = Run(*Pipeline::Parse("slice"), *module);
  REQUIRE(rewritten.ok());
  const auto read = [&] { return Parse(ptx::PrintModule(*rewritten->module)); };
  const auto unmarked = read();
  CHECK(!LaunchFills(*unmarked));
  CHECK(ParamsLaunchFills(*unmarked, *unmarked->FindFunction("k")).empty());
  MarkLaunchFills(*rewritten->module);
  MarkLaunchFills(*rewritten->module);  // once is enough
  const auto marked = read();
  CHECK(LaunchFills(*marked));
  CHECK(ParamsLaunchFills(*marked, *marked->FindFunction("plain")).empty());
  const auto& expected = rewritten->Find("k")->hidden;  // without the kernel's own one of such a name
  const auto found = ParamsLaunchFills(*marked, *marked->FindFunction("k"));
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(found[i].role == expected[i].role);
    CHECK(found[i].offset == expected[i].offset);
  }
}

TEST_CASE("SlicePass_KernelThatIsSlicedAlready_IsRefused") {
  const auto module = Parse(
      ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n.reg .b32 %r<3>;\nmov.u32 %r1, "
      "%ctaid.x;\nret;\n}\n");
  const auto once = Run(*Pipeline::Parse("slice"), *module);
  REQUIRE(once.ok());
  const auto twice = Run(*Pipeline::Parse("slice"), *Parse(ptx::PrintModule(*once->module)));
  REQUIRE(twice.ok());
  CHECK(twice->Find("k")->status == KernelStatus::kRefused);
  CHECK(twice->Find("k")->reason == "it is sliced already");
}

// A kernel at the end of a chain of functions, each of which calls the next one.
TEST_CASE("Passes_ChainsOfCalls_CostInProportion") {
  const auto chain = [](std::size_t length, std::string_view last) {
    std::string text =
        ".version 8.0\n.target sm_90\n.address_size 64\n.func f0() { .reg .b32 %r; " + std::string(last) + " ret; }\n";
    for (std::size_t i = 1; i < length; ++i)
      text += ".func f" + std::to_string(i) + "() { call f" + std::to_string(i - 1) + "; ret; }\n";
    return Parse(text + ".entry k() { call f" + std::to_string(length - 1) + "; ret; }\n");
  };
  for (const char* last : {"", "bar.sync 0;", "exit;", "ld.global.b32 %r, [0];"}) {
    INFO(last);
    const auto small = chain(400, last), large = chain(400 * testing::kLarger, last);
    const double growth = testing::Growth(1, [&](std::size_t size) {
      for (const auto& pass : AllPasses()) CHECK(Run(Pipeline({pass.get()}), size == 1 ? *small : *large).ok());
    });
    CHECK(growth < testing::kLinear);
  }
}
