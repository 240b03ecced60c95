#include "rewriter/ptx/form.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/defuse.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/word_rules.h"

using namespace gridloom;
using namespace gridloom::ptx;

namespace {

constexpr std::size_t kOpcodeCount = kOpcodeInfo.size();

// Registers that one instruction defines and uses, as text: "def %r1 %p1 use %r2 %rd1 guard %p2".
std::string DefsAndUses(const std::string& text) {
  DiagnosticSink sink;
  const auto module = ParseModule(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.func (.reg .b32 o) f(.reg .b32 i);\n.entry k() {\n.reg .pred "
      "%p<9>; "
      ".reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<20>; .reg .v4 .f32 %v; .shared .b8 smem[64];\nL:\n" +
          text + "\n}",
      sink);
  INFO(FormatDiagnostics(sink, "t", text));
  REQUIRE(!sink.has_errors());
  const auto& instruction = std::get<Instruction>(module->functions.back().body->statements.back());
  std::string out = "def";
  VisitDefs(instruction, [&](const Operand& operand) { out += ' ' + PrintOperand(operand); });
  out += " use";
  VisitUses(instruction, [&](const Operand& operand) { out += ' ' + PrintOperand(operand); });
  VisitGuard(instruction, [&](const Variable& variable, std::uint32_t index) {
    out += " guard " + std::string(variable.name) + std::to_string(index);
  });
  return out;
}

}  // namespace

TEST_CASE("Forms_EveryOpcodeButCallHasOne") {
  for (std::size_t i = 1; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    INFO(Info(opcode).text);
    CHECK(FormsOf(opcode).empty() == (opcode == Opcode::kCall));
  }
}

TEST_CASE("Forms_OperandCountsAreThoseOfTheOpcodeTable") {
  for (std::size_t i = 1; i < kOpcodeCount; ++i) {
    const OpcodeInfo& info = Info(static_cast<Opcode>(i));
    for (const Form& form : FormsOf(static_cast<Opcode>(i))) {
      INFO(info.text << " " << (form.modifiers.empty() ? "" : form.modifiers.front()));
      CHECK(form.min_operands() >= std::size_t{info.min_srcs});
      CHECK(form.operands.size() <= std::size_t{info.dsts} + info.max_srcs);
    }
  }
}

bool HasAddress(Opcode opcode) {
  return std::ranges::any_of(FormsOf(opcode), [](const Form& form) {
    return std::ranges::any_of(form.operands,
                               [](const OperandForm& operand) { return operand.access == Access::kMemory; });
  });
}

// "" when each word of the instruction has its place, else the first that has none, or what words are missing.
std::string Misplaced(const std::string& instruction) {
  DiagnosticSink sink;
  const auto module = ParseModule(
      ".version 9.0\n.target sm_90a\n.entry k() {\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n" + instruction + ";\n}", sink);
  REQUIRE(!sink.has_errors());
  const std::string wrong = WrongWordsOf(std::get<Instruction>(module->functions.back().body->statements.back()), 90);
  const std::size_t begin = wrong.find("'."), end = wrong.rfind('\'');
  return begin == std::string::npos ? wrong : wrong.substr(begin + 2, end - begin - 2);
}

TEST_CASE("Words_HaveTheirPlaces") {
  for (const char* taken : {"add.sat.s32 %r1, %r2, %r3",
                            "add.sat.sat.s32 %r1, %r2, %r3",
                            "mad.hi.sat.s32 %r1, %r2, %r3, %r1",
                            "ld.const[2].u32 %r1, [%d1]",
                            "ld.global.L1::evict_last.L2::128B.v4.u32 {%r1, %r2, %r3, %r0}, [%d1]",
                            "mma.sync.aligned.m16n8k16.row.row.f16.f16.f16.f16 %r1",
                            "cvt.rn.satfinite.relu.e4m3x2.f32 %r1, %r2, %r3",
                            "setp.lt.and.u32 %r1, %r2, %r3, %r1",
                            "max.xorsign.abs.f16x2 %r1, %r2, %r3",
                            "fence.proxy.tensormap::generic.acquire.gpu [%d1], 128",
                            "vadd.u32.u32.u32.sat.min %r1, %r2, %r3, %r1",
                            "atom.global.add.noftz.f32 %r1, [%d1], %r2",
                            "red.global.add.noftz.v4.f32 [%d1], {%r1, %r2, %r3, %r0}",

                            "cp.async.ca.shared.L2::128B.global [%r1], [%d1], 16",
                            "wmma.mma.sync.aligned.col.col.m16n16k16.f32.f32 %r1",
                            "st.global.L2::evict_last.v8.f32 [%d1], %r1",
                            "add.rn.sat.f32.bf16 %r1, %r2, %r3",
                            "createpolicy.fractional.L2::evict_normal.L2::evict_unchanged.b64 %d1",
                            "multimem.ld_reduce.acquire.gpu.global.add.acc::f32.v2.bf16x2 {%r1, %r2}, [%d1]",
                            "bar.cta.red.popc.u32 %r1, 0, %r2",
                            "ld.proxy::readonly.global.v2.u32 {%r1, %r2}, [%d1]",
                            "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b0::fill [%r1], %d1, %d2, %r2, %r3",
                            "tex.uni.1d.v4.f32.s32 {%r1, %r2, %r3, %r0}, [%d1, {%r1}]",
                            "tld4.uni.r.2d.v4.f32.f32 {%r1, %r2, %r3, %r0}, [%d1, {%r1, %r2}]"}) {
    INFO(taken);
    CHECK(Misplaced(taken) == "");
  }
  const std::pair<const char*, const char*> refused[] = {
      {"add.sat.s64 %d1, %d2, %d3", "sat"},
      {"add.cc.sat.s32 %r1, %r2, %r3", "sat"},
      {"add.sat.cc.s32 %r1, %r2, %r3", "cc"},
      {"mad.lo.sat.s32 %r1, %r2, %r3, %r1", "sat"},
      {"add.ftz.f64 %d1, %d2, %d3", "ftz"},
      {"add.rm.f16 %r1, %r2, %r3", "rm"},
      {"max.relu.u32 %r1, %r2, %r3", "relu"},
      {"ex2.approx.ftz.f16 %r1, %r2", "ftz"},
      {"and.u32.cc.b32 %r1, %r2, %r3", "cc"},
      {"set.eq.ftz.u32.s32 %r1, %r2, %r3", "ftz"},
      {"ld.v2.v4.u32 %r1, [%d1]", "v4"},
      {"st.ca.global.u32 [%d1], %r1", "ca"},
      {"atom.add.noftz.u32 %r1, [%d1], %r2", "noftz"},
      {"red.add.noftz.f64 [%d1], %d2", "noftz"},
      {"ret.sync", "sync"},
      {"ret.u32", "u32"},
      {"fence.sc.cta.f32", "f32"},
      {"red.global.add.u32.u32 [%d1], %r1", "u32"},
      {"add.rn.rn.f32 %r1, %r2, %r3", "rn"},
      {"mma.sync.aligned.m16n8k16.row.col.col.f16.f16.f16.f16 %r1", "col"},
      {"mma.sync.aligned.m16n8k16.row.col.popc.f16.f16.f16.f16 %r1", "popc"},
      {"tcgen05.wait::ld.sync.aligned.m16n8k16", "m16n8k16"},
      {"tcgen05.mma.cta_group::1.kind::f16.block_scale [%r1]", "block_scale"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.satfinite.f32.f16.f16", "satfinite"},
      {"ld.proxy::readonly.global.ca.u32 %r1, [%d1]", "ca"},
      {"add.ftz.rn.f32.f16 %r1, %r2, %r3", "ftz"},
      {"multimem.st.add.global.u32 [%d1], %r1", "add"},
      {"createpolicy.fractional.L2.b64 %d1", "L2"},
      {"atom.cas.v2.b32 %r1, [%d1], %r2, %r3", "v2"},
      {"shf.l.m8n8k4.b32 %r1, %r2, %r3, %r1", "m8n8k4"}};
  for (const auto& [instruction, word] : refused) {
    INFO(instruction);
    CHECK(Misplaced(instruction) == word);
  }
  const std::pair<const char*, const char*> needs[] = {
      {"ld.global.L2::evict_last.u32 %r1, [%d1]", "needs .v8 with .L2::evict_last"},
      {"st.global.L2::evict_first.v2.f64 [%d1], {%d1, %d2}", "needs .v4 with .L2::evict_first"},
      {"st.async.shared::cluster.u32 [%d1], %r1", "needs one of .mbarrier::complete_tx::bytes, .release with .async"}};
  for (const auto& [instruction, need] : needs) CHECK(Misplaced(instruction) == need);
}

TEST_CASE("Words_ThatComeFirst_DoSo") {
  const std::pair<const char*, const char*> late[] = {
      {"cp.ca.async.shared.global [%r1], [%d1], 16", "async' behind '.ca"},
      {"cp.async.tensor.1d.bulk.global.shared::cta.bulk_group [%d1, {%r1}], [%r2]", "bulk' behind '.tensor"},
      {"mbarrier.shared.init.b64 [%r1], 1", "init' behind '.shared"},
      {"mad.sat.hi.s32 %r1, %r2, %r3, %r1", "hi' behind '.sat"},
      {"mad.cc.lo.u32 %r1, %r2, %r3, %r1", "lo' behind '.cc"},
      {"wmma.sync.mma.aligned.row.col.m16n16k16.f32.f32 %r1", "mma' behind '.sync"},
      {"tensormap.tile.replace.rank.global.b1024.b32 [%d1], 1", "replace' behind '.tile"},
      {"shf.wrap.l.b32 %r1, %r2, %r3, %r1", "l' behind '.wrap"}};
  for (const auto& [instruction, word] : late) {
    INFO(instruction);
    CHECK(Misplaced(instruction) == word);
  }
}

TEST_CASE("Traits_AgreeWithClassesAndForms") {
  for (std::size_t i = 1; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OpcodeInfo& info = Info(opcode);
    INFO(info.text);
    // What loads, stores or is atomic says so; nothing accesses memory without an address.
    if (info.cls == OpClass::kLoad) CHECK(info.Has(Trait::kReads));
    if (info.cls == OpClass::kStore) CHECK(info.Has(Trait::kWrites));
    CHECK((info.cls == OpClass::kAtomic ? info.Has(Trait::kAtomic)
                                        : !info.Has(Trait::kAtomic) || info.cls == OpClass::kTexture));
    if (info.Has(Trait::kReads | Trait::kWrites | Trait::kTyped | Trait::kRows | Trait::kCopies | Trait::kHint))
      CHECK(HasAddress(opcode));
    if (info.Has(Trait::kTyped | Trait::kRows)) CHECK(info.Has(Trait::kReads | Trait::kWrites));
    if (info.Has(Trait::kAtomic)) CHECK(info.Has(Trait::kWrites));
    if (info.Has(Trait::kPrefetches)) CHECK(info.Has(Trait::kHint));
    // Where control goes is the class's affair, too.
    CHECK(info.Has(Trait::kBranches) == (info.cls == OpClass::kBranch));
    CHECK(info.Has(Trait::kCalls) == (info.cls == OpClass::kCall));
    if (info.Has(Trait::kReturns | Trait::kExits | Trait::kFaults)) CHECK(info.cls == OpClass::kControl);
    if (ptx::IsArithmetic(info.cls))
      CHECK_FALSE(info.Has(Trait::kReads | Trait::kWrites | Trait::kBranches | Trait::kCalls | Trait::kExits));
  }
}

static_assert(Info(Opcode::kUnknown).traits == Trait{});
static_assert(Info(Opcode::kLd).Has(Trait::kReads) && !Info(Opcode::kLd).Has(Trait::kWrites | Trait::kAtomic));

TEST_CASE("DefUse_FollowsTheForm") {
  CHECK(DefsAndUses("add.s32 %r1, %r2, 5;") == "def %r1 use %r2");
  CHECK(DefsAndUses("@!%p3 setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p4;") == "def %p1 %p2 use %r1 %r2 !%p4 guard %p3");
  CHECK(DefsAndUses("ld.global.v2.u32 {%r1, _}, [%rd1+8];") == "def %r1 use %rd1");
  CHECK(DefsAndUses("st.global.v2.f32 [%rd1], {%f1, %v.y};") == "def use %rd1 %f1 %v.y");
  CHECK(DefsAndUses("atom.global.add.u32 %r1, [%rd1], %r2;") == "def %r1 use %rd1 %r2");
  CHECK(DefsAndUses("shfl.sync.up.b32 %r1|%p1, %r2, %r3, 0, -1;") == "def %r1 %p1 use %r2 %r3");
  CHECK(DefsAndUses("bar.red.popc.u32 %r1, 0, %p1;") == "def %r1 use %p1");
  CHECK(DefsAndUses("bar.red.popc.u32 %r1, 0, %r2, %p1;") == "def %r1 use %r2 %p1");
  CHECK(DefsAndUses("bar.sync %r1;") == "def use %r1");
  CHECK(DefsAndUses("call (%r1), f, (%r2);") == "def %r1 use %r2");
  CHECK(DefsAndUses("call %rd1, (%r2), L;") == "def use %rd1 %r2");
  CHECK(DefsAndUses("cp.async.ca.shared.global [%r1], [%rd1], 4, %r2;") == "def use %r1 %rd1 %r2");
  CHECK(DefsAndUses("mbarrier.arrive.shared.b64 %rd1, [%r2], %r3;") == "def %rd1 use %r2 %r3");
  CHECK(DefsAndUses("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}|%p1, [%rd1, {%r1, %r2}];") ==
        "def %f1 %f2 %f3 %f4 %p1 use %rd1 %r1 %r2");
  CHECK(DefsAndUses(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;") ==
        "def %f1 %f2 %f3 %f4 use %f1 %f2 %f3 %f4 %rd1 %rd2 %p1");
  CHECK(DefsAndUses("unheardof.u32 %r1, [%rd1], %r2;") == "def %r1 %r2 use %r1 %rd1 %r2");
}

TEST_CASE("Carry_IsReadAndWritten") {
  const auto flags = [](const std::string& name, Opcode opcode, bool cc) {
    Instruction instruction;
    instruction.opcode = opcode;
    instruction.name = name;
    if (cc) instruction.modifiers.push_back({Mod::kCc, "cc"});
    return std::pair(ReadsCarry(instruction), WritesCarry(instruction));
  };
  CHECK(flags("add", Opcode::kAdd, true) == std::pair(false, true));
  CHECK(flags("addc", Opcode::kAddc, false) == std::pair(true, false));
  CHECK(flags("madc", Opcode::kMadc, true) == std::pair(true, true));
}
