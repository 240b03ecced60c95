// What instructions are to the timing model.
#include "sim/trace/classify.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/visit.h"
#include "sim/trace/code_table.h"
#include "tests/golden.h"
#include "tests/rewriter/ptx/corpus.h"

namespace gridloom::trace {
namespace {

/// The only tensor instruction of a kernel whose registers are declared.
Instruction TensorOf(const std::string& text) {
  const std::string ptx =
      ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<20>; .reg .f32 %f<20>; "
      ".reg .f64 %d<8>; "
      ".reg .b64 %rd<4>;\n" +
      text + "\nret;\n}\n";
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  REQUIRE(!sink.has_errors());
  const CodeTable table = BuildCodeTable(*module, *module->FindFunction("k"));
  for (const Instruction& instruction : table.code.instructions) {
    if (instruction.op == OpClass::kTensor) return instruction;
  }
  FAIL("no tensor instruction");
  return {};
}

TEST_CASE("Classify_TensorInstructions_WorkIsThatOfHalvesThatTakeAsLong") {
  const auto units = [](const std::string& text) { return unsigned{TensorOf(text).width}; };
  const std::string f4 = "{%f0, %f1, %f2, %f3}", r4 = "{%r0, %r1, %r2, %r3}", r2 = "{%r4, %r5}";
  CHECK(units("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + f4 + ", " + r4 + ", " + r2 + ", " + f4 + ";") ==
        4);
  CHECK(units("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " + f4 + ", " + r4 + ", " + r2 + ", " + f4 + ";") ==
        4);
  CHECK(units("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " + f4 + ", {%r0, %r1}, {%r4}, " + f4 + ";") == 2);
  CHECK(units("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " + f4 + ", " + r4 + ", " + r2 + ", " + f4 + ";") ==
        4);
  CHECK(units("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 " + r4 + ", " + r4 + ", " + r2 + ", " + r4 + ";") == 4);
  CHECK(units("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 " + r4 + ", " + r4 + ", " + r2 + ", " + r4 + ";") == 4);
  CHECK(units("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};") == 1);
  CHECK(units("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1};") == 8);
  CHECK(units("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 " + r4 + ", " + r2 + ", " + r2 + ", " + r4 + ";") == 2);
  CHECK(units("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 " + f4 + ", " + r4 + ", " + r4 + ", " + f4 +
              ", %r6, 0x0;") == 4);
}

constexpr std::string_view kOpClasses[] = {
#define TRACE_OP_CLASS(name, text, meaning) #text,
#include "sim/trace/op_classes.def"
#undef TRACE_OP_CLASS
};

/// What the model learns of an entry from its opcode and modifiers.
std::string Describe(const Instruction& entry) {
  std::string text(kOpClasses[static_cast<std::size_t>(entry.op)]);
  if (entry.op == OpClass::kMemory) text += " space " + std::to_string(static_cast<int>(entry.space));
  if (entry.flags != 0) text += " flags " + std::to_string(entry.flags);
  if (entry.width != 0) text += " width " + std::to_string(entry.width);
  return text;
}

// Per opcode, all that its instructions in the corpus are to the timing model.
TEST_CASE("Classify_CorpusOfEveryOpcode") {
  gridloom::testing::CheckGoldenFolder("tests/golden/classes", ".txt", [](const std::string&, const std::string&) {
    std::map<std::string, std::set<std::string>> classes;
    for (const ptx::testing::CorpusFile& file : ptx::testing::LoadCorpus()) {
      DiagnosticSink sink;
      const auto module = ptx::ParseModule(file.text, sink);
      REQUIRE(module != nullptr);
      for (const ptx::Function& function : module->functions) {
        if (!function.body) continue;
        ptx::VisitStatements(*function.body, [&](ptx::Statement& statement) {
          const auto* instruction = std::get_if<ptx::Instruction>(&statement);
          if (instruction == nullptr || instruction->opcode == ptx::Opcode::kUnknown) return;
          std::string all;
          for (const Instruction& entry : Classify(*instruction, [](const ptx::Operand&) { return std::nullopt; }))
            all += (all.empty() ? "" : ", ") + Describe(entry);
          classes[std::string(instruction->name)].insert(all);
        });
      }
    }
    CHECK(classes.size() + 1 == ptx::kOpcodeInfo.size());  // the unknown one
    std::string text;
    for (const auto& [opcode, descriptions] : classes) {
      for (const std::string& description : descriptions) text += opcode + ": " + description + "\n";
    }
    return gridloom::testing::GoldenSections{{"classes", text}};
  });
}

}  // namespace
}  // namespace gridloom::trace
