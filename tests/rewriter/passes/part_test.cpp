// Passes on one part of a separately compiled program: what other parts can name stays.
#include "rewriter/passes/part.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"

namespace gridloom::passes {
namespace {

// `here` and `deep` may be called from other parts, by name and through `table`; `there` is defined in another one.
const char* const kPart = R"(
.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b32 result) there(.param .b32 x);
.visible .func (.param .b32 result) deep()
{ .reg .b32 %r; mov.u32 %r, %ctaid.x; st.param.b32 [result], %r; ret; }
.visible .func (.param .b32 result) here()
{ .reg .b32 %r; { .param .b32 v; call (v), deep, (); ld.param.b32 %r, [v]; } st.param.b32 [result], %r; ret; }
.visible .global .u64 table[1] = {here};
.visible .entry calls_here(.param .u64 out)
{ .reg .b64 %a; .reg .b32 %r; ld.param.u64 %a, [out];
  { .param .b32 v; call (v), here, (); ld.param.b32 %r, [v]; } st.global.u32 [%a], %r; ret; }
.visible .entry calls_there(.param .u64 out)
{ .reg .b64 %a; .reg .b32 %r; ld.param.u64 %a, [out]; mov.u32 %r, %ctaid.x;
  { .param .b32 x; .param .b32 v; st.param.b32 [x], %r; call (v), there, (x); ld.param.b32 %r, [v]; } st.global.u32 [%a], %r; ret; }
.visible .entry calls_by_pointer(.param .u64 out)
{ .reg .b64 %a, %f; .reg .b32 %r; ld.param.u64 %a, [out]; ld.global.u64 %f, [table];
  prototype: .callprototype (.param .b32 _) _ ();
  { .param .b32 v; call (v), %f, (), prototype; ld.param.b32 %r, [v]; } st.global.u32 [%a], %r; ret; }
)";

const char* const kOtherPart = R"(
.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b32 result) here();
.visible .func (.param .b32 result) there(.param .b32 x)
{ .reg .b32 %r; { .param .b32 v; call (v), here, (); ld.param.b32 %r, [v]; } st.param.b32 [result], %r; ret; }
)";

std::unique_ptr<ptx::Module> Parse(const std::string& text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  if (!sink.has_errors()) ptx::VerifyModule(*module, sink);
  INFO(FormatDiagnostics(sink, "part.ptx", text));
  REQUIRE(!sink.has_errors());
  return module;
}

std::string TextOf(const ptx::Module& module, std::string_view function) {
  const std::string text = ptx::PrintModule(module), name = " " + std::string(function) + "(";
  const std::size_t at = text.find(name, text.find(".visible .func"));
  return text.substr(at, text.find("\n}\n", at) - at);
}

TEST_CASE("RunOnPart_KernelsCallCopies_FunctionsStay") {
  const auto module = Parse(kPart);
  for (const char* passes : {"slice", "slice,profile,release", "profile-strided,release-strided"}) {
    INFO(passes);
    const auto rewritten = RunOnPart(*Pipeline::Parse(passes), *module);
    REQUIRE(rewritten.ok());
    const ptx::Module& part = *rewritten->module;
    CHECK(rewritten->Find("calls_here")->status == KernelStatus::kChanged);
    CHECK(rewritten->Find("calls_there")->status == KernelStatus::kRefused);
    CHECK(rewritten->Find("calls_by_pointer")->status == KernelStatus::kRefused);
    CHECK(rewritten->Find("calls_by_pointer")->reason ==
          "it calls through a pointer, which may lead to another part of the program");
    for (const char* function : {"here", "deep", "calls_by_pointer"}) {
      CHECK(part.FindFunction(function)->params.size() == module->FindFunction(function)->params.size());
      CHECK(TextOf(part, function) == TextOf(*module, function));
    }
    CHECK(part.FindFunction("here__of_kernels")->linkage == ptx::Linkage::kInternal);

    // It parses again, and links with the part it came with.
    std::vector<ptx::LinkInput> inputs;
    inputs.push_back({"this", Parse(ptx::PrintModule(part))});
    inputs.push_back({"other", Parse(kOtherPart)});
    const auto linked =
        ptx::LinkModules(std::move(inputs), [](std::string_view name) { return name.starts_with("gridloom_"); });
    INFO((linked.ok() ? "" : linked.error().message));
    CHECK(linked.ok());
  }
}

TEST_CASE("RunOnPart_SlicedKernelReadsTheIndexInCopies") {
  const auto rewritten = RunOnPart(*Pipeline::Parse("slice"), *Parse(kPart));
  REQUIRE(rewritten.ok());
  CHECK(rewritten->module->FindFunction("deep__of_kernels")->params.size() > 0);
  CHECK(TextOf(*rewritten->module, "here__of_kernels").find("deep__of_kernels") != std::string::npos);
  CHECK(rewritten->Find("calls_here")->hidden.size() > 0);
}

}  // namespace
}  // namespace gridloom::passes
