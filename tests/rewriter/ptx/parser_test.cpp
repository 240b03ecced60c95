#include "rewriter/ptx/parser.h"

#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/printer.h"

using namespace gridloom;
using namespace gridloom::ptx;

namespace {

struct Parsed {
  std::unique_ptr<Module> module;
  DiagnosticSink sink;
  std::string text;
  std::string errors() const { return FormatDiagnostics(sink, "t.ptx", text); }
};

Parsed Parse(std::string text) {
  Parsed out;
  out.text = std::move(text);
  out.module = ParseModule(out.text, out.sink);
  REQUIRE(out.module != nullptr);
  return out;
}

// The statements of a kernel with some registers.
Parsed ParseBody(const std::string& body) {
  return Parse(
      ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 arr[64];\n"
      ".func (.reg .u32 x) callee (.reg .u32 y);\n"
      ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n"
      ".reg .f32 %f<10>;\n.reg .v4 .f32 %v;\n" +
      body + "\n}\n");
}

const Instruction& LastInstruction(const Parsed& parsed) {
  const Block& block = *parsed.module->functions.back().body;
  for (auto it = block.statements.rbegin(); it != block.statements.rend(); ++it) {
    if (const auto* instruction = std::get_if<Instruction>(&*it)) return *instruction;
  }
  FAIL("no instruction");
  std::abort();
}

std::string Reprint(const std::string& instruction) {
  const Parsed parsed = ParseBody(instruction);
  INFO(parsed.errors());
  REQUIRE(!parsed.sink.has_errors());
  return PrintInstruction(LastInstruction(parsed));
}

}  // namespace

TEST_CASE("Parser_Instructions_PrintAsWritten") {
  for (const std::string text : {
           "add.s32 %r1, %r2, %r3;",
           "@!%p1 bra LABEL; LABEL:",
           "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];",
           "ld.param.u64 %rd1, [p];",
           "ld.global.u32 %r1, [%rd1+-4];",
           "ld.param.b32 %r1, [p+0];",
           "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;",
           "mov.u32 %r1, %tid.x;",
           "mov.b64 %rd1, {%r1, %r2};",
           "mov.b64 {%r1, _}, %rd2;",
           "mov.f32 %f1, %v.x;",
           "mov.u64 %rd1, arr+8;",
           "shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;",
           "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}];",
           "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], "
           "[%r4];",
           "call (%r1), callee, (%r2);",
           "call.uni _, callee, (%r2);",
           "ret;",
           "frobnicate.wild.u32 %r1, [%rd1], {%r2, 5}, (%r3, 7);",
           "vadd.u32.u32.u32 %r1, %r2.b0, %r3.h1;",
           "fma.rn.f32 %f1, %f2, 0f3F800000, -1.5;",
           "ld.global.u32 %r1, [4096];",
       }) {
    const std::string first = text.substr(0, text.find(';') + 1);
    CHECK(Reprint(text) == first);
  }
}

TEST_CASE("Parser_ConstantExpressions_AreEvaluated") {
  CHECK(Reprint("mov.u32 %r1, (1+2)*3;") == "mov.u32 %r1, 9;");
  CHECK(Reprint("mov.u32 %r1, 1 ? -2 : 3;") == "mov.u32 %r1, -2;");
  CHECK(Reprint("mov.u64 %rd1, (.u64)-1;") == "mov.u64 %rd1, 18446744073709551615;");
  CHECK(Reprint("mov.u32 %r1, -7 / 2;") == "mov.u32 %r1, -3;");
  CHECK(Reprint("mov.u32 %r1, WARP_SZ;") == "mov.u32 %r1, WARP_SZ;");
  CHECK(Reprint("mov.u32 %r1, WARP_SZ - 1;") == "mov.u32 %r1, 31;");
  CHECK(Reprint("mov.u32 %r1, ~0 & 0xFF;") == "mov.u32 %r1, 255U;");
  CHECK(Reprint("ld.global.u32 %r1, [%rd1+-4];") == "ld.global.u32 %r1, [%rd1+-4];");
  CHECK(Reprint("ld.global.u32 %r1, [arr+4*2];") == "ld.global.u32 %r1, [arr+8];");
  CHECK(Reprint("mov.u32 %r1, 1U << 3 | 0b11;") == "mov.u32 %r1, 11U;");
  CHECK(Reprint("mov.f64 %rd1, 1.0/2;") == "mov.f64 %rd1, 0d3FE0000000000000;");
}

TEST_CASE("Parser_WarpSize_IsANumberWhereverOneStands") {
  const Parsed parsed = Parse(
      ".version 9.0\n.target sm_90\n.address_size 64\n.global .align WARP_SZ .b32 a[WARP_SZ];\n"
      ".global .u32 b[2] = {WARP_SZ, -WARP_SZ};\n.global .u32 c = WARP_SZ;\n"
      ".visible .entry k(.param .align WARP_SZ .b8 p[WARP_SZ]) .reqntid WARP_SZ, 1, 1\n"
      "{\n.reg .b32 %r<WARP_SZ>;\nmov.b32 %r31, a[WARP_SZ];\n}\n");
  INFO(parsed.errors());
  REQUIRE(!parsed.sink.has_errors());
  CHECK(PrintVariable(parsed.module->variables[0]) == ".global .align 32 .b32 a[32]");
  CHECK(PrintVariable(parsed.module->variables[1]) == ".global .u32 b[2] = {32, -32}");
  CHECK(PrintVariable(parsed.module->variables[2]) == ".global .u32 c = 32");
  CHECK(parsed.module->functions[0].directives[0].values == std::vector<std::uint64_t>{32, 1, 1});
  CHECK(LastInstruction(parsed).operands[0].index == 31);
}

// What ptxas stores for each; it has no other masks for numbers.
TEST_CASE("Parser_MasksOfNumbers_GiveTheirByte") {
  const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
  const Parsed parsed = Parse(head +
                              ".global .b8 a[5] = {0xff(0x12345678), 0xff00(0x12345678), 0xff0000(0x12345678), "
                              "0xff000000(0x12345678), 0xff00(WARP_SZ * 256)};\n.global .u64 b = 0xff00(-1);\n");
  INFO(parsed.errors());
  REQUIRE(!parsed.sink.has_errors());
  CHECK(PrintVariable(parsed.module->variables[0]) == ".global .b8 a[5] = {120U, 86U, 52U, 18U, 32U}");
  CHECK(PrintVariable(parsed.module->variables[1]) == ".global .u64 b = 255U");
  CHECK(Parse(head + ".global .b16 a = 0xffff(1);\n").sink.has_errors());
  CHECK(Parse(head + ".global .b8 a = 0xff0(1);\n").sink.has_errors());
  CHECK(Parse(head + ".global .b8 a = 0xff(1.0);\n").sink.has_errors());
}

// What ptxas stores for each.
TEST_CASE("Parser_ConstantExpressions_HaveTheSignThatTheirOperatorsGive") {
  const auto value = [](const std::string& expression) {
    const Parsed parsed = ParseBody("mov.u64 %rd1, " + expression + ";");
    INFO(parsed.errors());
    REQUIRE(!parsed.sink.has_errors());
    return LastInstruction(parsed).operands[1].int_literal.value;
  };
  // A complement is unsigned.
  CHECK(value("~3/32") == 0x07ffffffffffffff);
  CHECK(value("~8>>1") == 0x7ffffffffffffffb);
  CHECK(value("+~3>>1") == 0x7ffffffffffffffe);
  CHECK(value("~~-8>>1") == 0x7ffffffffffffffc);
  CHECK(value("(~3+1)/2") == 0x7ffffffffffffffe);
  CHECK(value("(~3&-1)/2") == 0x7ffffffffffffffe);
  CHECK(value("(~3<0)?1:2") == 2);
  CHECK(value("(.s64)~3/32") == 0);
  // So is a remainder, and its operands.
  CHECK(value("5%-3") == 5);
  CHECK(value("7%-3U") == 7);
  CHECK(value("(-9) % 4") == 3);
  CHECK(value("~0 % 10") == 5);
  CHECK(value("5 % 3 > -1 ? 1 : 2") == 2);
  CHECK(value("((5 % 3) - 3) / 2") == 0x7fffffffffffffff);
  CHECK(value("-7 / 2 % 2") == 1);
  // Others take their operands' sign; a comparison's is signed.
  CHECK(value("-7/2") == 0xfffffffffffffffd);
  CHECK(value("-7/2U") == 0x7ffffffffffffffc);
  CHECK(value("(-4&-2)/3") == 0xffffffffffffffff);
  CHECK(value("(3<4)-5>>1") == 0xfffffffffffffffe);
  CHECK(value("(!1 - 3)/2") == 0xffffffffffffffff);
  CHECK(value("-1>>1U") == 0xffffffffffffffff);
  // Six bits of a shift count.
  CHECK(value("1<<64") == 1);
  CHECK(value("2>>64") == 2);
  CHECK(value("1<<-1") == 0x8000000000000000);
  CHECK(value("-2>>65") == 0xffffffffffffffff);
}

TEST_CASE("Parser_VariablesIndexedByRegisters_AreWrittenOut") {
  // The address in the instruction, and that what is printed can be read again and says the same.
  const auto address = [](const std::string& instruction) {
    const Parsed parsed = ParseBody(
        ".shared .u32 %gl_at0; .reg .s16 %h; .reg .u64 %w; .shared .b32 words[8]; .global .u32 square[2][3];" +
        instruction);
    INFO(parsed.errors());
    REQUIRE(!parsed.sink.has_errors());
    const std::string printed = PrintModule(*parsed.module);
    const Parsed again = Parse(printed);
    INFO(again.errors());
    CHECK(!again.sink.has_errors());
    CHECK(PrintModule(*again.module) == printed);
    return PrintInstruction(LastInstruction(parsed));
  };
  CHECK(address("ld.global.u8 %r1, arr[%r2];") == "ld.global.u8 %r1, [%gl_at1];");  // the name that was free
  CHECK(address("@%p1 st.shared.u32 words[%h+3], %r1;") == "@%p1 st.shared.u32 [%gl_at1], %r1;");
  CHECK(address("mov.u64 %rd1, square[%w+-1];") == "mov.u64 %rd1, %gl_at1;");
  CHECK(address("mov.u32 %r1, words[%r1];") == "mov.u32 %r1, %gl_at1;");
  CHECK(address("cvta.shared.u64 %rd1, words[%r1];") == "cvta.shared.u64 %rd1, %gl_at1;");
  const auto error = [](const std::string& instruction) {
    const Parsed parsed = ParseBody(".global .u32 one; .global .u32 square[2][3];" + instruction + " mov.u32 %r7, 1;");
    CHECK(parsed.sink.error_count() == 1);
    CHECK(PrintInstruction(LastInstruction(parsed)) == "mov.u32 %r7, 1;");
    return parsed.errors();
  };
  CHECK(error("ld.global.u8 %r1, arr[%f2];").find("'%f2' cannot be an array index") != std::string::npos);
  CHECK(error("ld.global.u8 %r1, arr[%p2];").find("'%p2' cannot be an array index") != std::string::npos);
  CHECK(error("ld.global.u8 %r1, arr[%v];").find("'%v' cannot be an array index") != std::string::npos);
  CHECK(error("ld.global.u8 %r1, arr[nobody];").find("expected a constant or a register as array index") !=
        std::string::npos);
  CHECK(error("ld.global.u8 %r1, nobody[%r1];").find("'nobody' is not a declared array") != std::string::npos);
  CHECK(error("ld.global.u32 %r1, one[%r1];").find("'one' is not an array") != std::string::npos);
  CHECK(error("ld.global.u32 %r1, square[%r1][2];").find("error: expected ',' or ';'") != std::string::npos);
  CHECK(error("ld.global.u8 %r1, arr[%r1 4];").find("expected ']'") != std::string::npos);
  CHECK(error("atom.global.add.u32 %r1, square[%r1], 1;").find("is for ld, ldu, st, mov and cvta") !=
        std::string::npos);
}

TEST_CASE("Parser_Names_ReferToTheirDeclarations") {
  const Parsed parsed = ParseBody("ld.global.u32 %r7, [arr+4];");
  const Instruction& instruction = LastInstruction(parsed);
  const Operand& destination = instruction.operands[0];
  REQUIRE(destination.kind == OperandKind::kRegister);
  CHECK(destination.variable->name == "%r");
  CHECK(destination.index == 7);
  REQUIRE(instruction.operands[1].kind == OperandKind::kAddress);
  CHECK(instruction.operands[1].address->base[0].variable == parsed.module->FindVariable("arr"));
  CHECK(instruction.operands[1].address->offset == 4);
}

TEST_CASE("Parser_NestedScopes_HideOuterNames") {
  const Parsed parsed = ParseBody("{ .reg .b64 %r<3>; mov.b64 %r1, 0; mov.b32 %r5, 0; }");
  REQUIRE(!parsed.sink.has_errors());
  const Block& body = *parsed.module->functions.back().body;
  const Block& inner = *std::get<std::unique_ptr<Block>>(body.statements.back());
  CHECK(std::get<Instruction>(inner.statements[1]).operands[0].variable->type == ScalarType::kB64);
  CHECK(std::get<Instruction>(inner.statements[2]).operands[0].variable->type == ScalarType::kB32);
}

TEST_CASE("Parser_Labels_InnermostWinsEvenWhenItComesLater") {
  const Parsed parsed = ParseBody("L: { bra L; L: ret; } bra L;");
  REQUIRE(!parsed.sink.has_errors());
  const Block& body = *parsed.module->functions.back().body;
  const Block& inner = *std::get<std::unique_ptr<Block>>(body.statements[body.statements.size() - 2]);
  CHECK(std::get<Instruction>(inner.statements[0]).operands[0].label == &inner.labels[0]);
  CHECK(LastInstruction(parsed).operands[0].label == &body.labels[0]);
}

TEST_CASE("Parser_DeclaredRegister_ShadowsSpecialRegister") {
  const Parsed parsed = ParseBody("{ .reg .u32 %laneid; mov.u32 %r1, %laneid; } mov.u32 %r1, %laneid;");
  CHECK(LastInstruction(parsed).operands[1].kind == OperandKind::kSpecial);
  const Block& body = *parsed.module->functions.back().body;
  const Block& inner = *std::get<std::unique_ptr<Block>>(body.statements[body.statements.size() - 2]);
  CHECK(std::get<Instruction>(inner.statements[1]).operands[1].kind == OperandKind::kRegister);
}

TEST_CASE("Parser_FunctionUses_PointToTheDefinition") {
  const Parsed parsed = Parse(
      ".version 8.0\n.target sm_90\n.address_size 64\n.func f();\n.entry k() { call f; ret; }\n.func f() { ret; }\n");
  REQUIRE(!parsed.sink.has_errors());
  const Block& body = *parsed.module->functions[1].body;
  CHECK(std::get<Instruction>(body.statements[0]).operands[0].function == &parsed.module->functions[2]);
}

TEST_CASE("Parser_Initializers_KnowTheirElements") {
  const Parsed parsed = Parse(
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".global .u32 a[3][2] = {{1}, 5, {7, 8}};\n.global .u32 b[] = {1, 2, 3};\n"
      ".global .u8 c[2] = {0xFF(a+4), 0xFF00(a)};\n.global .u64 d = generic(a)+8;\n");
  INFO(parsed.errors());
  REQUIRE(!parsed.sink.has_errors());
  std::vector<std::uint64_t> elements;
  for (const Initializer& value : parsed.module->variables[0].initializer) elements.push_back(value.element);
  CHECK(elements == std::vector<std::uint64_t>{0, 2, 4, 5});
  CHECK(parsed.module->variables[1].element_count() == 3);
  CHECK(PrintVariable(parsed.module->variables[2]) == ".global .u8 c[2] = {0xFF(a+4), 0xFF00(a)}");
  CHECK(PrintVariable(parsed.module->variables[3]) == ".global .u64 d = generic(a)+8");
}

TEST_CASE("Parser_SourceSection_IsNotLookedAt") {
  const std::string head = ".version 9.4\n.target sm_90a\n.address_size 64\n";
  const std::string section =
      ".nv_intermediate_source_section {\n  .code_block {\n    .ir_name: \"tile ir\"\n    .sourceFileName: 2\n    "
      ".source_begin\n"
      "entry @k(%a: tile<16xf32>) { { \"no end 0f12 */ /* .entry no .source_end here\n}}} // }\n  .source_end\n  "
      "}\n}\n";
  const Parsed parsed = Parse(head + section + ".visible .entry k()\n{\nret;\n}\n");
  INFO(parsed.errors());
  REQUIRE(!parsed.sink.has_errors());
  CHECK(parsed.module->functions.size() == 1);
  CHECK(parsed.module->functions[0].loc.line == 14);
  const std::string printed = PrintModule(*parsed.module);
  CHECK(printed.find("/* .entry no .source_end here\n}}} // }\n") != std::string::npos);
  CHECK(PrintModule(*Parse(printed).module) == printed);

  const auto error = [&](const std::string& text) { return Parse(head + text).errors(); };
  CHECK(error(section.substr(0, section.find("  .source_end\n  }"))).find(".source_begin without a line .source_end") !=
        std::string::npos);
  CHECK(error(".nv_intermediate_source_section {\n.code_block {\n}\n").find("without its closing '}'") !=
        std::string::npos);
  CHECK(error(".nv_intermediate_source_section 7\n").find("expected '{'") != std::string::npos);
  CHECK(error(".visible .entry k(.hidden .param .align 64 .b8 map[128])\n{\nret;\n}\n")
            .find("hidden parameters are not supported") != std::string::npos);
}

TEST_CASE("Parser_Errors_PointAtTheTokenAndRecover") {
  const Parsed parsed = ParseBody("add.s32 %r1 %r2;\nld.global.u32 %r1, [%rd1;\nmov.u32 %r3, 1;\n%%%;\nret;");
  CHECK(parsed.sink.error_count() == 3);
  CHECK(parsed.errors().find("t.ptx:13:13: error: expected ',' or ';' after the operands of add.s32, found '%r2'") !=
        std::string::npos);
  CHECK(LastInstruction(parsed).opcode == Opcode::kRet);
}

TEST_CASE("Parser_HostileNesting_IsRefused") {
  for (const std::string open : {"{", "(", "-", "mov.b32 %r1, ((((((((((((((((", "mov.b32 {{{{{{{{{{{{{{{{{"}) {
    std::string body;
    for (int i = 0; i < 100000; ++i) body += open;
    CHECK(ParseBody(body).sink.has_errors());
    CHECK(ParseBody("mov.b32 %r1, " + body).sink.has_errors());
  }
}
