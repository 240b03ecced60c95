#include "rewriter/ptx/linker.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::ptx {
namespace {

constexpr std::string_view kHeader = ".version 8.0\n.target sm_90\n.address_size 64\n";

std::unique_ptr<Module> Parse(const std::string& text) {
  DiagnosticSink sink;
  auto module = ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, "test", text));
  REQUIRE_FALSE(sink.has_errors());
  return module;
}

bool IsVprintf(std::string_view name) { return name == "vprintf"; }

Result<std::unique_ptr<Module>> LinkTexts(const std::vector<std::string>& texts) {
  std::vector<LinkInput> inputs;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool has_header = texts[i].starts_with(".version");
    inputs.push_back({std::string(1, static_cast<char>('a' + i)) + ".ptx",
                      Parse((has_header ? "" : std::string(kHeader)) + texts[i])});
  }
  return LinkModules(std::move(inputs), IsVprintf);
}

std::unique_ptr<Module> Linked(const std::vector<std::string>& texts) {
  auto result = LinkTexts(texts);
  INFO((result.ok() ? "" : result.error().message));
  REQUIRE(result.ok());
  return *std::move(result);
}

std::string ErrorOf(const std::vector<std::string>& texts) {
  const auto result = LinkTexts(texts);
  return result.ok() ? "linked" : result.error().message;
}

std::size_t Count(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Every module-level name an operand refers to is declared in this very module, and its print parses back to itself.
void CheckWhole(Module& module) {
  const auto check = [&](Operand& operand) {
    if (operand.function != nullptr) CHECK(module.FindFunction(operand.function->name) == operand.function);
    if (operand.variable != nullptr && operand.kind == OperandKind::kSymbol &&
        module.FindVariable(operand.text) != nullptr) {
      CHECK(module.FindVariable(operand.text) == operand.variable);
    }
    CHECK((operand.kind != OperandKind::kName || operand.directive != nullptr));
  };
  for (Function& function : module.functions) {
    if (function.body != nullptr) VisitOperands(*function.body, check);
  }
  for (Variable& variable : module.variables) VisitOperands(variable, check);
  const std::string text = PrintModule(module);
  INFO(text);
  CHECK(PrintModule(*Parse(text)) == text);
}

TEST_CASE("LinkModules_ExternFunction_IsTheOtherModulesDefinition") {
  const auto module =
      Linked({".extern .func (.param .b32 r) twice(.param .b32 x);\n"
              ".visible .entry k() { .reg .b32 %r<3>; { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;\n"
              "call.uni (q), twice, (p); ld.param.b32 %r2, [q]; } ret; }\n",
              ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r0, [x]; shl.b32 "
              "%r1, %r0, 1;\n"
              "st.param.b32 [r], %r1; ret; }\n"});
  CheckWhole(*module);
  const std::string text = PrintModule(*module);
  CHECK(Count(text, ".extern") == 0);
  CHECK(text.find(".visible .func (.param .b32 r) twice") < text.find("call.uni"));
}

TEST_CASE("LinkModules_DifferentTargets_EachFunctionKeepsItsOwn") {
  const auto linked = Linked({".version 8.0\n.target sm_75\n.address_size 64\n.entry a() { ret; }\n",
                              ".version 8.0\n.target sm_90\n.address_size 64\n.entry b() { ret; }\n"});
  CHECK(linked->sm() == 90);
  CHECK(linked->FindFunction("a")->target_sm == 75);
  CHECK(linked->FindFunction("b")->target_sm == 90);
}

TEST_CASE("LinkModules_ExternVariable_IsOneVariable") {
  const auto module =
      Linked({".extern .global .align 4 .b8 table[];\n.visible .entry k() { .reg .b32 %r<2>; ld.global.b32 %r1, "
              "[table+4]; ret; }\n",
              ".visible .global .align 16 .b8 table[8] = {1, 2, 3};\n"});
  CheckWhole(*module);
  REQUIRE(module->variables.size() == 1);
  CHECK(module->variables[0].bytes() == 8);
  CHECK(module->variables[0].align == 16);
}

TEST_CASE("LinkModules_FileLocalSymbols_AreRenamedApart") {
  const std::string unit =
      ".global .align 1 .b8 $str[3] = {104, 105};\n"
      ".func helper() { .reg .b64 %rd<2>; mov.u64 %rd1, $str; ret; }\n";
  const auto module = Linked(
      {unit + ".visible .entry a() { call helper; ret; }\n", unit + ".visible .entry b() { call helper; ret; }\n"});
  CheckWhole(*module);
  const std::string text = PrintModule(*module);
  CHECK(text.find("mov.u64 %rd1, $str;") != std::string::npos);
  CHECK(text.find("mov.u64 %rd1, $str$1;") != std::string::npos);
  CHECK(text.find("helper$1") != std::string::npos);
  CHECK(module->FindFunction("a") != nullptr);
}

TEST_CASE("LinkModules_FileLocalAndGlobalOfOneName_TheGlobalKeepsIt") {
  const auto module =
      Linked({".global .u32 x = 1;\n.visible .entry a() { .reg .b32 %r<2>; ld.global.b32 %r1, [x]; ret; }\n",
              ".visible .global .u32 x = 2;\n"});
  CheckWhole(*module);
  CHECK(PrintModule(*module).find("[x$1]") != std::string::npos);
  CHECK(module->FindVariable("x")->linkage == Linkage::kVisible);
}

TEST_CASE("LinkModules_TwoStrongDefinitions_AreAnErrorNamingBoth") {
  CHECK(ErrorOf({".visible .func f() { ret; }\n", ".visible .func f() { ret; }\n"}) ==
        "function 'f' is defined in a.ptx and again in b.ptx");
  CHECK(ErrorOf({".visible .global .u32 v;\n", ".visible .global .u32 v;\n"}) ==
        "variable 'v' is defined in a.ptx and again in b.ptx");
  CHECK(ErrorOf({".entry k() { ret; }\n", ".visible .entry k() { ret; }\n"}) ==
        "function 'k' is defined in a.ptx and again in b.ptx");
}

TEST_CASE("LinkModules_Weak_GivesWayOrTheFirstStays") {
  const std::string weak = ".weak .func (.param .b32 r) f() { st.param.b32 [r], 1; ret; }\n";
  const std::string strong = ".visible .func (.param .b32 r) f() { st.param.b32 [r], 2; ret; }\n";
  const std::string other = ".weak .func (.param .b32 r) f() { st.param.b32 [r], 3; ret; }\n";
  const std::string caller = ".visible .entry k() { { .param .b32 q; call (q), f; } ret; }\n";
  for (const auto& texts : std::vector<std::vector<std::string>>{
           {weak + caller, strong}, {strong, weak + caller}, {weak + caller, strong, other}}) {
    const auto module = Linked(texts);
    CheckWhole(*module);
    const std::string text = PrintModule(*module);
    CHECK(text.find("], 2;") != std::string::npos);
    CHECK(text.find("], 1;") == std::string::npos);
  }
  const std::string text = PrintModule(*Linked({weak, other + caller}));
  CHECK(text.find("], 1;") != std::string::npos);
  CHECK(text.find("], 3;") == std::string::npos);
}

TEST_CASE("LinkModules_Common_TheLargestStaysUnlessOneIsDefined") {
  const auto commons = Linked(
      {".common .global .align 4 .b8 c[4];\n", ".common .global .align 8 .b8 c[16];\n", ".extern .global .b8 c[];\n"});
  REQUIRE(commons->variables.size() == 1);
  CHECK(commons->variables[0].bytes() == 16);
  CHECK(commons->variables[0].align == 8);
  const auto defined = Linked({".common .global .align 4 .b8 c[4];\n", ".visible .global .align 4 .b8 c[4] = {1};\n"});
  REQUIRE(defined->variables.size() == 1);
  CHECK(defined->variables[0].has_initializer);
}

TEST_CASE("LinkModules_DynamicSharedMemory_StaysOneExternWithTheLargestAlignment") {
  const auto module =
      Linked({".extern .shared .align 4 .b8 smem[];\n.visible .entry a() { .reg .b32 %r<2>; ld.shared.b32 %r1, [smem]; "
              "ret; }\n",
              ".extern .shared .align 16 .b8 smem[];\n.visible .entry b() { .reg .b32 %r<2>; ld.shared.b32 %r1, "
              "[smem]; ret; }\n"});
  CheckWhole(*module);
  REQUIRE(module->variables.size() == 1);
  CHECK(module->variables[0].linkage == Linkage::kExtern);
  CHECK(module->variables[0].align == 16);
}

TEST_CASE("LinkModules_Undefined_IsReportedByNameOnlyWhenUsed") {
  CHECK(ErrorOf({".extern .func f();\n.extern .global .u32 v;\n.visible .entry k() { .reg .b32 %r<2>; call f; "
                 "ld.global.b32 %r1, [v]; ret; }\n"}) ==
        "variable 'v' is used in a.ptx but defined nowhere\nfunction 'f' is used in a.ptx but defined nowhere");
  CHECK(ErrorOf({".extern .func f();\n.extern .global .u32 v;\n.visible .entry k() { ret; }\n"}) == "linked");
}

TEST_CASE("LinkModules_Undefined_InWhatNoKernelComesTo_IsNoError") {
  const std::string dead =
      ".extern .func nobody();\n.extern .global .u32 v;\n.visible .func dead() { .reg .b32 %r; call nobody; "
      "ld.global.b32 %r, [v]; ret; }\n";
  const auto module = Linked({dead, ".visible .entry k() { ret; }\n"});
  CheckWhole(*module);
  const std::string message =
      "variable 'v' is used in a.ptx but defined nowhere\nfunction 'nobody' is used in a.ptx but defined nowhere";
  const std::string declared = ".extern .func dead();\n";
  // Called, also through another function; its address taken, by a kernel or for a variable; behind another name.
  CHECK(ErrorOf({dead, declared + ".visible .entry k() { call dead; ret; }\n"}) == message);
  CHECK(ErrorOf({dead, declared + ".func f() { call dead; ret; }\n.visible .entry k() { call f; ret; }\n"}) == message);
  CHECK(ErrorOf({dead, declared + ".visible .entry k() { .reg .b64 %r; mov.b64 %r, dead; ret; }\n"}) == message);
  CHECK(ErrorOf({dead, declared + ".visible .global .u64 table = dead;\n.visible .entry k() { ret; }\n"}) == message);
  CHECK(ErrorOf({dead + ".visible .func other();\n.alias other, dead;\n",
                 ".extern .func other();\n.visible .entry k() { call other; ret; }\n"}) == message);
}

TEST_CASE("LinkModules_SystemFunctions_NeedNoDefinitionAndAreDeclaredOnce") {
  const std::string unit = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n";
  const std::string use = "() { { .param .b32 r; .param .b64 f; .param .b64 a; call (r), vprintf, (f, a); } ret; }\n";
  const auto module = Linked({unit + ".visible .entry a" + use, unit + ".visible .entry b" + use});
  CheckWhole(*module);
  CHECK(Count(PrintModule(*module), ".extern .func") == 1);
}

TEST_CASE("LinkModules_Contradictions_AreAllReported") {
  CHECK(ErrorOf({".extern .global .u32 x;\n", ".visible .func x() { ret; }\n"}) ==
        "'x' is a function in b.ptx and a variable in a.ptx");
  CHECK(ErrorOf({".extern .global .u32 x;\n", ".visible .const .u32 x = 1;\n"}) ==
        "variable 'x' is in different state spaces (.const, .global) in b.ptx and in a.ptx");
  CHECK(ErrorOf({".extern .global .b8 x[8];\n.extern .global .b8 y[1];\n",
                 ".visible .global .b8 x[4];\n.visible .global .b8 y[2];\n"}) ==
        "variable 'x' has different sizes (4, 8 bytes) in b.ptx and in a.ptx\nvariable 'y' has different sizes (2, 1 "
        "bytes) in b.ptx and in a.ptx");
}

TEST_CASE("LinkModules_PartThatStandsIn_LeavesTheTargetAlone") {
  const std::string newer = ".version 8.8\n.target sm_121\n.address_size 64\n.visible .func part() { ret; }\n";
  const std::string exact =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .func part();\n.visible .entry k() { call part; ret; "
      "}\n";
  CHECK(ErrorOf({newer, exact}).find("no device runs both") != std::string::npos);
  std::vector<LinkInput> inputs;
  inputs.push_back({"library", Parse(newer), true});
  inputs.push_back({"kernel", Parse(exact)});
  const auto linked = LinkModules(std::move(inputs), IsVprintf);
  REQUIRE(linked.ok());
  CHECK((*linked)->targets.front() == "sm_90a");
  inputs.clear();
  inputs.push_back({"library", Parse(newer), true});
  const auto alone = LinkModules(std::move(inputs), IsVprintf);
  REQUIRE(alone.ok());
  CHECK((*alone)->targets.front() == "sm_121");
}

TEST_CASE("LinkModules_Headers_TheHighestVersionAndTarget") {
  const auto module =
      Linked({".version 7.8\n.target sm_80, texmode_independent, debug\n.address_size 64\n",
              ".version 8.1\n.target sm_75\n.address_size 64\n", ".version 8.0\n.target sm_80\n.address_size 64\n"});
  CHECK(module->version_major == 8);
  CHECK(module->version_minor == 1);
  CHECK(module->targets == std::vector<std::string_view>{"sm_80", "texmode_independent"});
  CHECK(Linked({".version 8.0\n.target sm_90\n", ".version 8.0\n.target sm_90a\n"})->targets[0] == "sm_90a");
  CHECK(ErrorOf({".version 8.6\n.target sm_100\n", ".version 8.0\n.target sm_90a\n"}) ==
        "no device runs both sm_100 (a.ptx) and sm_90a (b.ptx)");
  CHECK(ErrorOf({".version 3.0\n.target sm_20\n.address_size 32\n", ".version 8.0\n.target sm_90\n.address_size 64\n"})
            .find("-bit addresses") != std::string::npos);
}

TEST_CASE("LinkModules_Initialisers_PointAtWhatTheOtherModuleDefines") {
  const auto module = Linked(
      {".extern .global .u32 target;\n.extern .func f();\n.visible .global .u64 pointers[2] = {generic(target), f};\n",
       ".func g() { ret; }\n.global .u64 deep = g;\n.visible .global .u64 again = deep;\n"
       ".visible .global .u32 target = 7;\n.visible .func f() { ret; }\n"});
  CheckWhole(*module);
  const std::string text = PrintModule(*module);
  CHECK(text.find("target = 7") < text.find("pointers"));
  CHECK(text.find(".visible .func f()") < text.find("pointers"));
}

/// Who asks for the last variable of a chain gets all of it first, however long it is.
TEST_CASE("LinkModules_AChainOfInitialisers_MayBeAsLongAsAModule") {
  constexpr int kVariables = 200'000;
  std::string chain = ".visible .global .u64 v0 = 1;\n";
  for (int i = 1; i < kVariables; ++i)
    chain += ".visible .global .u64 v" + std::to_string(i) + " = v" + std::to_string(i - 1) + ";\n";
  const std::string last = "v" + std::to_string(kVariables - 1);
  const auto module = Linked({".extern .global .u64 " + last + ";\n", chain});
  REQUIRE(module->items.size() == kVariables);
  CHECK(std::get<Variable*>(module->items.front())->name == "v0");
  CHECK(std::get<Variable*>(module->items.back())->name == last);
}

TEST_CASE("LinkModules_Lines_KeepTheirFiles") {
  const std::string unit = "() {\n.loc 1 5 3, function_name $L__info, inlined_at 1 7 3\nret;\n}\n";
  const auto module = Linked({".visible .entry a" + unit +
                                  ".file 1 \"one.cu\"\n.file 2 \"x.h\"\n.section .debug_str {\n$L__info:\n.b8 97\n}\n",
                              ".visible .entry b" + unit + ".file 1 \"two.cu\"\n"});
  const std::string text = PrintModule(*module);
  CHECK(text.find(".loc 1 5 3") != std::string::npos);
  CHECK(text.find(".loc 3 5 3") != std::string::npos);
  CHECK(text.find(".file 3 \"two.cu\"") != std::string::npos);
  CHECK(text.find("debug_str") == std::string::npos);
  CHECK(text.find("$L__info") == std::string::npos);
}

TEST_CASE("LinkModules_Alias_IsADefinition") {
  const auto module =
      Linked({".extern .func f();\n.visible .entry k() { call f; ret; }\n",
              ".func impl() { ret; }\n.visible .func f();\n.alias f, impl;\n", ".func impl() { ret; }\n"});
  CheckWhole(*module);
  CHECK(PrintModule(*module).find(".alias f, impl;") != std::string::npos);
}

TEST_CASE("LinkModules_OneModule_StaysAsItIs") {
  const std::string text = std::string(kHeader) +
                           ".file 1 \"a.cu\"\n.global .u32 x;\n.visible .entry k() {\n.loc 1 2 3, function_name $L, "
                           "inlined_at 1 1 1\nret;\n}\n"
                           ".section .debug_str {\n$L:\n.b8 97\n}\n";
  CHECK(PrintModule(*Linked({text})) == PrintModule(*Parse(text)));
}

TEST_CASE("LinkModules_Nothing_IsAnError") { CHECK_FALSE(LinkModules({}, IsVprintf).ok()); }

}  // namespace
}  // namespace gridloom::ptx
