// A copy prints as the original does, keeps source locations and shares nothing with it.
#include "rewriter/ptx/clone.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/ptx/visit.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::ptx;

TEST_CASE("CloneModule_WholeCorpus_PrintsTheSameWithoutTheOriginal") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    DiagnosticSink sink;
    auto original = ParseModule(file.text, sink);
    const std::string printed = PrintModule(*original);
    const auto copy = CloneModule(*original);
    original.reset();  // under a sanitizer, whatever the copy still borrowed shows
    CHECK(PrintModule(*copy) == printed);
    DiagnosticSink complaints;
    CHECK(VerifyModule(*copy, complaints));
  }
}

TEST_CASE("CloneModule_Instructions_KeepTheirLocations") {
  DiagnosticSink sink;
  const auto module = ParseModule(".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n  ret;\n}\n", sink);
  const auto copy = CloneModule(*module);
  const auto& statement = copy->FindFunction("k")->body->statements.at(0);
  CHECK(std::get<Instruction>(statement).loc == SourceLoc{6, 3});
}

TEST_CASE("CloneFunction_OwnDeclarationsAreCopied_ModuleOnesShared") {
  DiagnosticSink sink;
  const auto module = ParseModule(R"(.version 8.0
.target sm_90
.address_size 64
.global .u32 counter;
.func f(.param .u32 p)
{
  .reg .u32 %r<3>;
  .reg .pred %p;
LOOP:
  ld.param.u32 %r0, [p];
  ld.global.u32 %r1, [counter];
  setp.ne.u32 %p, %r0, %r1;
  @%p bra LOOP;
  call f, (%r1);
  ret;
}
)",
                                  sink);
  REQUIRE(!sink.has_errors());
  Function* const f = module->FindFunction("f");
  Function& g = CloneFunction(*module, *f, "g");
  CHECK(g.name == "g");
  CHECK(f->name == "f");
  VisitOperands(*g.body, [&](Operand& operand) {
    if (operand.variable == nullptr) return;
    const bool of_module = operand.variable == module->FindVariable("counter");
    bool of_g = operand.variable == &g.params[0];
    for (Variable& variable : g.body->variables) of_g |= operand.variable == &variable;
    CHECK(of_module != of_g);
  });
  DiagnosticSink complaints;
  CHECK(VerifyModule(*module, complaints));
  const std::string printed = PrintModule(*module);
  CHECK(printed.find("call f, (%r1)", printed.find("g(")) != std::string::npos);
}
