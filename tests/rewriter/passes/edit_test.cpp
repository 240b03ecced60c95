#include "rewriter/passes/edit.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"

using namespace gridloom;
using namespace gridloom::ptx;
using namespace gridloom::passes;

namespace {

std::unique_ptr<Module> Parse(const std::string& body) {
  DiagnosticSink sink;
  auto module = ParseModule(
      ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 g;\n.entry k(.param .u32 a)\n{\n" + body + "}\n",
      sink);
  REQUIRE(!sink.has_errors());
  return module;
}

void CheckValid(const Module& module) {
  const std::string text = PrintModule(module);
  DiagnosticSink sink;
  const auto again = ParseModule(text, sink);
  VerifyModule(*again, sink);
  INFO(text << FormatDiagnostics(sink, "printed", text));
  CHECK(!sink.has_errors());
  CHECK(PrintModule(*again) == text);
}

}  // namespace

TEST_CASE("NewRegister_NameTaken_GetsANumber") {
  const auto module = Parse("  { .reg .u32 %gl_t; mov.u32 %gl_t, 1; }\n  ret;\n");
  FunctionEditor editor(*module, *module->FindFunction("k"));
  CHECK(editor.NewRegister(ScalarType::kU32, "t") == "%gl_t_0");
  CHECK(editor.NewRegister(ScalarType::kU32, "t") == "%gl_t_1");
  CHECK(editor.NewRegister(ScalarType::kU32, "u") == "%gl_u");
}

TEST_CASE("Text_NamesOfEveryScope_AreResolvedAndCarryTheLocation") {
  const auto module = Parse("  .reg .b32 %r<4>;\n  .reg .pred %p;\nEND:\n  ret;\n");
  Function& k = *module->FindFunction("k");
  {
    FunctionEditor editor(*module, k);
    const std::string t = editor.NewRegister(ScalarType::kU32, "t");
    InsertAtEntry(*k.body, editor.Text("ld.param.u32 " + t + ", [a]; st.global.u32 [g], %r3; @!%p add.u32 %r1, " + t +
                                           ", %r2; bra END;",
                                       {6, 2}));
  }
  const auto& load = std::get<Instruction>(k.body->statements.at(3));
  CHECK(load.loc == SourceLoc{6, 2});
  CHECK(load.operands[1].address->base[0].variable == &k.params[0]);
  const auto& store = std::get<Instruction>(k.body->statements.at(4));
  CHECK(store.operands[0].address->base[0].variable == module->FindVariable("g"));
  CHECK(store.operands[1].index == 3);
  CHECK(std::get<Instruction>(k.body->statements.at(5)).guard->predicate->name == "%p");
  CHECK(std::get<Instruction>(k.body->statements.at(6)).operands[0].label->name == "END");
  CheckValid(*module);
}

TEST_CASE("Text_WithDeclarations_BecomesABlock") {
  const auto module = Parse("  .reg .u32 %r;\n  ret;\n");
  Function& k = *module->FindFunction("k");
  {
    FunctionEditor editor(*module, k);
    const std::string again = editor.NewLabel("again");
    auto text = editor.Text(".reg .pred %q; " + again + ": setp.eq.u32 %q, %r, 0; @%q bra " + again + ";", {});
    REQUIRE(text.size() == 1);
    InsertAtEntry(*k.body, std::move(text));
  }
  CheckValid(*module);
}

TEST_CASE("EditStatements_NestedBlocks_BeforeAfterAndDrop") {
  const auto module = Parse("  .reg .u32 %r;\n  { mov.u32 %r, 1; { mov.u32 %r, 2; } }\n  ret;\n");
  Function& k = *module->FindFunction("k");
  {
    FunctionEditor editor(*module, k);
    EditStatements(*k.body, [&](Statement& statement, Replacement& replacement) {
      const auto* instruction = std::get_if<Instruction>(&statement);
      if (instruction == nullptr || instruction->opcode != Opcode::kMov) return;
      const std::string t = editor.NewRegister(ScalarType::kU32, "t");
      replacement.before = editor.Text("mov.u32 " + t + ", 7;", instruction->loc);
      replacement.after = editor.Text("mov.u32 %r, " + t + ";", instruction->loc);
      replacement.drop = instruction->operands[1].int_literal.value == 1;
    });
  }
  INFO(PrintModule(*module));
  CHECK(PrintModule(*module).find(R"({
	.reg .u32 %gl_t;
	.reg .u32 %gl_t_0;
	.reg .u32 %r;
	{
		mov.u32 %gl_t, 7;
		mov.u32 %r, %gl_t;
		{
			mov.u32 %gl_t_0, 7;
			mov.u32 %r, 2;
			mov.u32 %r, %gl_t_0;
		}
	}
	ret;
}
)") != std::string::npos);
  CheckValid(*module);
}
