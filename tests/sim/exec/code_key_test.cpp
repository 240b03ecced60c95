// What compiled code is kept under: the same for all texts of which the compiler makes the same code, another one for
// others.
#include "sim/exec/runtime/code_key.h"

#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/support/diagnostic.h"

using namespace gridloom;
using exec::ProgramKey;

namespace {

/// Every line has something that one of the tests changes.
constexpr const char* kText = R"(// made from /tmp/tmpa1b2/kernel.cu
.version 8.0
.target sm_75
.address_size 64
.global .u32 counts[4] = {1, 2, 3, 4};
.const .u32 scale[2] = {5, 6};
.global .u64 table[1] = {callee};
.extern .shared .align 16 .b8 dynamic[];
.func other(.param .u32 x)
{
  .reg .u32 %a<3>;
  mov.u32 %a1, 8;
  ret;
}
.func (.param .u32 r) callee(.param .u32 x)
{
  .reg .u32 %a<3>;
  ld.param.u32 %a1, [x];
  add.u32 %a2, %a1, 7;
  st.param.u32 [r], %a2;
  ret;
}
.visible .entry child()
{
  .shared .u32 place[9];
  .reg .u32 %r<3>;
  st.shared.u32 [place], 10;
  ret;
}
.visible .entry plain(.param .u64 p)
{
  .reg .u32 %r<6>;
  .reg .u64 %rd<4>;
  .loc 1 11 3
  ld.param.u64 %rd1, [p]; // the place
  mov.u32 %r1, 12;
  st.global.u32 [%rd1], %r1;
  .loc 1 13 3, function_name $L_name, inlined_at 1 14 2
  ret;
}
.visible .entry calls(.param .u64 p)
{
  .reg .u32 %r<6>;
  .param .u32 x, r;
  st.param.u32 [x], 15;
  call (r), callee, (x);
  ret;
}
.visible .entry by_table(.param .u64 p)
{
  .reg .u64 %rd<4>;
  .reg .u32 %r<4>;
  .param .u32 x, r;
  ld.global.u64 %rd1, [table];
  call (r), %rd1, (x), prototype;
  ret;
prototype: .callprototype (.param .u32 _) _ (.param .u32 _);
}
.visible .entry names_child(.param .u64 p)
{
  .reg .u64 %rd<4>;
  mov.u64 %rd1, child;
  ret;
}
.file 1 "/tmp/tmpa1b2/kernel.cu"
.section .debug_str
{
  info_string0: .b8 47, 116, 109, 112, 0
}
.nv_intermediate_source_section {
  .source_begin
entry @one(%a: tile<16xf32>) {
  .source_end
}
)";

std::string Changed(const std::string& from, const std::string& to, std::string text = kText) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

ProgramKey KeyOf(const std::string& text, const std::string& kernel, bool recorded = false) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModuleLazily(text, sink, ptx::PtxOrigin::kCompiled);
  INFO(FormatDiagnostics(sink, "ptx", text));
  REQUIRE_FALSE(sink.has_errors());
  const ptx::Function* const function = module->FindFunction(kernel);
  REQUIRE(function != nullptr);
  REQUIRE(module->unread->Read(*function).empty());
  const exec::SymbolTable symbols = exec::NumberSymbols(*module);
  return exec::CodeKey(*module, symbols, exec::SharedCodeOf(*module, symbols), *function, recorded);
}

const char* const kKernels[] = {"child", "plain", "calls", "by_table", "names_child"};

/// Which kernels have another key in the other text.
std::string Others(const std::string& text, bool recorded = false) {
  std::string others;
  for (const char* const kernel : kKernels) {
    if (KeyOf(kText, kernel, recorded) != KeyOf(text, kernel, recorded))
      others += std::string(others.empty() ? "" : " ") + kernel;
  }
  return others;
}

}  // namespace

TEST_CASE("CodeKey_WhatIsNoCode_IsNotInIt", "[code_key]") {
  CHECK(Others(Changed("tmpa1b2", "another_folder")).empty());                               // in a comment
  CHECK(Others(Changed("// the place", "")).empty());                                        // and of a kernel
  CHECK(Others(Changed("mov.u32 %r1, 12;", "mov.u32  /* twelve */ %r1,12 ;")).empty());      // blanks
  CHECK(Others(Changed("\"/tmp/tmpa1b2/kernel.cu\"", "\"/home/x.cu\", 1234, 99")).empty());  // .file
  CHECK(Others(Changed(".loc 1 11 3", ".loc 1 12 4")).empty());                              // .loc
  CHECK(Others(Changed("inlined_at 1 14 2", "inlined_at 1 15 2")).empty());                  //
  CHECK(Others(Changed("47, 116, 109, 112, 0", "47, 117, 0\n.b8 9")).empty());               // debug sections
  CHECK(Others(Changed("entry @one", "entry @another")).empty());  // nor the source of a compiler
  CHECK(Others(Changed("{1, 2, 3, 4}", "{1, 2, 3, 5}")).empty());  // values of tables
  CHECK(Others(Changed("{5, 6}", "{5, 7}")).empty());
  CHECK(Others(Changed("mov.u32 %a1, 8", "mov.u32 %a1, 9")).empty());  // a function that nobody calls
}

// nvcc names what is static, or in a namespace without a name, by the path of the source.
TEST_CASE("CodeKey_NamesThatAreOfTheModuleAlone_AreNotInIt", "[code_key]") {
  const auto renamed = [](const std::string& from, const std::string& to) {
    std::string text = kText;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  };
  CHECK(Others(renamed("counts", "_INTERNAL_1a2b_counts")).empty());
  CHECK(Others(renamed("scale", "scale_of_another")).empty());
  CHECK(Others(renamed("callee", "_INTERNAL_1a2b_callee")).empty());
  CHECK(Others(Changed("[p]; // the place", "[plain_param_0];",
                       Changed("plain(.param .u64 p)", "plain(.param .u64 plain_param_0)")))
            .empty());
  // But which of them it is.
  CHECK(Others(Changed("call (r), callee, (x);", "call (r), callee_2, (x);",
                       Changed(".func other(.param .u32 x)\n", ".func (.param .u32 r) callee_2(.param .u32 x)\n"))) ==
        "calls");
  CHECK(Others(Changed("[table]", "[counts]")) == "by_table");
}

TEST_CASE("CodeKey_WhatAKernelReaches_IsInItAndInNoOther", "[code_key]") {
  CHECK(Others(Changed("mov.u32 %r1, 12", "mov.u32 %r1, 13")) == "plain");
  CHECK(Others(Changed("st.global.u32 [%rd1]", "st.global.u32 [%rd1+4]")) == "plain");
  CHECK(Others(Changed("%a1, 7", "%a1, 8")) == "calls by_table");
  CHECK(Others(Changed("place[9]", "place[10]")) ==
        "child names_child");  // shared memory of whom it names is laid out with its own
  CHECK(Others(Changed("{callee}", "{0}")) == "by_table");
  CHECK(Others(Changed(".visible .entry plain(.param .u64 p)", ".visible .entry plain(.param .u64 p) .maxntid 64")) ==
        "plain");
  CHECK(Others(Changed(".loc 1 11 3", ".pragma \"nounroll\";")) == "plain");
}

TEST_CASE("CodeKey_WhatAllKernelsDependOn_IsInAll", "[code_key]") {
  const std::string all = "child plain calls by_table names_child";
  CHECK(Others(Changed("sm_75", "sm_80")) == all);
  CHECK(Others(Changed(".version 8.0", ".version 8.1")) == all);
  CHECK(Others(Changed("scale[2]", "scale[3]")) == all);                          // isspacep.const asks for all of them
  CHECK(Others(Changed(".global .u32 counts[4] = {1, 2, 3, 4};", "\n")) == all);  // numbers of the others
  CHECK(Others(Changed(".extern .shared .align 16", ".extern .shared .align 32")) == all);
}

TEST_CASE("CodeKey_LinesWithinAFunction_AreInIt", "[code_key]") {
  CHECK(Others(Changed("// the place", "// the\n//place")) == "plain");
  CHECK(Others(Changed(".loc 1 13 3", "\n.loc 1 13 3")) == "plain");
  CHECK(Others(Changed("add.u32 %a2, %a1, 7;", "\nadd.u32 %a2, %a1, 7;")) == "calls by_table");
  CHECK(Others(Changed("add.u32 %a2, %a1, 7;\n  st.param", "add.u32 %a2, %a1, 7; st.param")) == "calls by_table");
}

TEST_CASE("CodeKey_WhereAFunctionStands_IsNotInIt", "[code_key]") {
  CHECK(Others(Changed("// made from", "// a line more\n\n// made from")).empty());
  CHECK(Others(Changed(".global .u32 counts", "\n// counts\n.global .u32 counts")).empty());
  CHECK(Others(Changed(".visible .entry plain", "\n.visible .entry plain")).empty());
  CHECK(Others(Changed(".func (.param .u32 r) callee", "\n\n\n.func (.param .u32 r) callee")).empty());
  CHECK(Others(Changed("{\n  .reg .u32 %a<3>;\n  ld.param", "\n{ .reg .u32 %a<3>;\n\n  ld.param"))
            .empty());                                                         // before its first instruction
  CHECK(Others(Changed("mov.u32 %a1, 8;", "mov.u32 %a1, 8;\n\n\n")).empty());  // in a function that nobody calls
  CHECK(Others(Changed("info_string0", "\n\ninfo_string0")).empty());
}

TEST_CASE("CodeKey_OfRecordedCode_HasTheNumbersOfItsFunctionsInstructions", "[code_key]") {
  CHECK(KeyOf(kText, "calls", true) != KeyOf(kText, "calls"));
  // A function before the callee is longer by an instruction.
  const std::string longer = Changed("mov.u32 %a1, 8;", "mov.u32 %a1, 8; mov.u32 %a1, 9;");
  CHECK(Others(longer).empty());
  CHECK(Others(longer, true) == "calls by_table");
}
