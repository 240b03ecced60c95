// What each pass makes of a few lines of PTX.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/parser.h"
#include "sim/device/device_files.h"
#include "sim/lowering/lower.h"
#include "sim/trace/code_table.h"

namespace gridloom {
namespace {

using lowering::Kernel, lowering::Node, lowering::Pass, lowering::Term;

struct Sample {
  trace::KernelCode code;
  Kernel kernel;
};

/// The lines in a kernel with parameters a and n, after these passes.
Sample Make(const std::string& lines, std::initializer_list<const char*> names, const std::string& name = "h200") {
  const std::string ptx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n) {
.reg .pred %p<4>;
.reg .b32 %r<20>;
.reg .b64 %d<20>;
.reg .f32 %f<20>;
)" + lines + "\nret;\n}\n";
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  REQUIRE(!sink.has_errors());
  Sample sample{trace::BuildCodeTable(*module, *module->FindFunction("k")).code, {}};
  const auto device = sim::LoadDevice(name);
  REQUIRE(device.ok());
  const lowering::Target target{.device = *device, .budget = 32};
  sample.kernel = lowering::KernelOf(sample.code);
  for (const char* wanted : names) {
    const auto passes = lowering::Passes();
    const auto pass = std::ranges::find_if(passes, [&](const Pass& one) { return std::string(one.name) == wanted; });
    REQUIRE(pass != passes.end());
    pass->run(sample.kernel, target);
  }
  return sample;
}

/// The opcodes that are left, with the offset of an access behind its own.
std::string TextOf(const Sample& sample) {
  std::string text;
  for (const lowering::Block& block : sample.kernel.blocks) {
    for (const Node& node : block.nodes) {
      text += (text.empty() ? "" : " ") + sample.code.meanings.texts[node.text];
      for (const Term& term : node.sources) {
        if (term.kind == Term::Kind::kOffset && term.value != 0)
          text += "+" + std::to_string(static_cast<std::int64_t>(term.value));
      }
    }
  }
  return text;
}

std::string After(const std::string& lines, std::initializer_list<const char*> names) {
  return TextOf(Make(lines, names));
}

}  // namespace

TEST_CASE("Copies_OfValues_AreReadAsTheOriginal") {
  CHECK(After("ld.param.u64 %d1, [a];\ncvta.to.global.u64 %d2, %d1;\nmov.b64 %d3, %d2;\nld.global.u32 %r1, [%d3];\n"
              "st.global.u32 [%d3], %r1;",
              {"copies"}) == "ld.param.u64 ld.global.u32 st.global.u32 ret");
  // Addresses of shared memory are others when they are generic. A move under a guard is no copy.
  CHECK(After("cvta.shared.u64 %d2, %d1;\n@%p1 mov.b64 %d3, %d2;\nst.u32 [%d3], %r1;", {"copies"}) ==
        "cvta.shared.u64 mov.b64 st.u32 ret");
  // Special registers are read by instructions.
  CHECK(After("mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ntid.x;\nst.u32 [%d3], %r1;\nst.u32 [%d3], %r2;", {"copies"}) ==
        "mov.u32 st.u32 st.u32 ret");
}

TEST_CASE("Copies_AtTheEndOfALoop_AreComputedInPlace") {
  const std::string begin = "mov.u32 %r1, 0;\nL:\n", end = "\n@%p1 bra L;\nst.u32 [%d1], %r1;";
  CHECK(After(begin + "add.s32 %r2, %r1, 1;\nmov.u32 %r1, %r2;" + end, {"copies"}) == "mov.u32 add.s32 bra st.u32 ret");
  // The old value is needed first.
  CHECK(After(begin + "add.s32 %r2, %r1, 1;\nst.u32 [%d1+4], %r1;\nmov.u32 %r1, %r2;" + end, {"copies"}) ==
        "mov.u32 st.u32+4 add.s32 bra st.u32 ret");
  // Both are needed later.
  CHECK(After(begin + "add.s32 %r2, %r1, 1;\nmov.u32 %r1, %r2;" + end + "\nst.u32 [%d1], %r2;", {"copies"}) ==
        "mov.u32 add.s32 mov.u32 bra st.u32 st.u32 ret");
}

TEST_CASE("Constants_OfConstants_AreNotComputed") {
  CHECK(After("mov.u32 %r1, 5;\nadd.s32 %r2, %r1, 3;\nmul.lo.s32 %r3, %r2, %r2;\nst.u32 [%d1], %r3;",
              {"copies", "constants", "dead"}) == "st.u32 ret");
  // A parameter is an operand of arithmetic, and in a register where an address is asked for.
  const std::string parameter = "ld.param.u32 %r1, [n];\nadd.s32 %r2, %r3, %r1;\nst.u32 [%d1], %r2;";
  CHECK(TextOf(Make(parameter, {"constants", "dead"}, "v100")) == "add.s32 st.u32 ret");
  CHECK(TextOf(Make(parameter, {"constants", "dead"}, "h200")) == "ld.param.u32 add.s32 st.u32 ret");
  CHECK(After("ld.param.u64 %d1, [a];\nst.u32 [%d1], %r2;", {"constants", "dead"}) == "ld.param.u64 st.u32 ret");
}

TEST_CASE("SharedValues_OfTheSameSources_AreComputedOnce") {
  CHECK(After("mov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.x;\nadd.s32 %r3, %r1, 1;\nadd.s32 %r4, %r2, 1;\n"
              "st.u32 [%d1], %r3;\nst.u32 [%d1], %r4;",
              {"shared_values", "dead"}) == "mov.u32 add.s32 st.u32 st.u32 ret");
  // Another operand, another opcode; loads may bring something else.
  CHECK(After("mov.u32 %r1, %tid.x;\nadd.s32 %r3, %r1, 1;\nadd.s32 %r4, %r1, 2;\nsub.s32 %r5, %r1, 1;\n"
              "ld.u32 %r6, [%d1];\nld.u32 %r7, [%d1];\nst.v4.u32 [%d1], {%r3, %r4, %r5, %r6};\nst.u32 [%d1], %r7;",
              {"shared_values", "dead"}) == "mov.u32 add.s32 add.s32 sub.s32 ld.u32 ld.u32 st.v4.u32 st.u32 ret");
  // The first one is computed on one way only.
  CHECK(After("mov.u32 %r1, %tid.x;\n@%p1 bra L;\nadd.s32 %r2, %r1, 1;\nst.u32 [%d1], %r2;\nL:\nadd.s32 %r3, %r1, 1;\n"
              "st.u32 [%d1], %r3;",
              {"shared_values", "dead"}) == "mov.u32 bra add.s32 st.u32 add.s32 st.u32 ret");
}

TEST_CASE("Addresses_WithConstants_AreOffsets") {
  CHECK(After("add.s64 %d2, %d1, 16;\nld.global.u32 %r1, [%d2+4];\nadd.s64 %d3, %d2, -8;\nst.global.u32 [%d3], %r1;",
              {"addresses", "dead"}) == "ld.global.u32+20 st.global.u32+8 ret");
  // A pointer that goes on: what was made of it before it did is another address.
  CHECK(After("add.s64 %d2, %d1, 16;\nadd.s64 %d1, %d1, 64;\nld.global.u32 %r1, [%d2];\nst.global.u32 [%d1], %r1;",
              {"addresses", "dead"}) == "add.s64 add.s64 ld.global.u32 st.global.u32 ret");
  // More than an instruction has room for.
  CHECK(After("add.s64 %d2, %d1, 8388608;\nld.global.u32 %r1, [%d2];\nst.global.u32 [%d2], %r1;",
              {"addresses", "dead"}) == "add.s64 ld.global.u32 st.global.u32 ret");
}

TEST_CASE("Dead_ResultsWithoutReaders_AreLeftOut") {
  CHECK(After("mul.f32 %f1, %f2, %f3;\nadd.f32 %f4, %f1, %f1;\nld.global.f32 %f5, [%d1];\nst.global.f32 [%d1], %f2;",
              {"dead"}) == "st.global.f32 ret");
  // A counter that only counts; effects without readers.
  CHECK(After("L:\nadd.s32 %r1, %r1, 1;\natom.global.add.u32 %r2, [%d1], 1;\nld.volatile.global.u32 %r3, [%d1];\n"
              "@%p1 bra L;",
              {"dead"}) == "atom.global.add.u32 ld.volatile.global.u32 bra ret");
}

TEST_CASE("Atomics_OfOneValueToOneAddress_AreOne") {
  const auto ones = [](const std::string& lines, const std::string& device = "h200") {
    const Sample sample = Make(lines, {"copies", "atomics"}, device);
    std::size_t count = 0;
    for (const lowering::Block& block : sample.kernel.blocks) {
      for (const Node& node : block.nodes) count += node.one_lane ? 1 : 0;
    }
    return count;
  };
  const std::string pointer = "ld.param.u64 %d1, [a];\n";
  CHECK(ones(pointer + "red.global.add.u32 [%d1], 1;") == 1);
  CHECK(ones(pointer + "atom.global.add.u32 %r1, [%d1+4], 1;") == 1);
  CHECK(ones(pointer + "mov.u32 %r1, %ctaid.x;\nred.global.max.u32 [%d1], %r1;") == 1);
  CHECK(ones(pointer + "red.global.add.u32 [%d1], 1;", "gtx480") == 0);
  // Of a sum each lane learns what it would have found.
  CHECK(ones(pointer + "atom.global.add.u32 %r1, [%d1], 1;\nst.global.u32 [%d1], %r1;") == 1);
  // Values of their own are made one; not those of 64 bits whose old value is read.
  const std::string value = pointer + "mov.u32 %r1, %tid.x;\ncvt.u64.u32 %d4, %r1;\n";
  CHECK(ones(value + "red.global.add.u32 [%d1], %r1;") == 1);
  CHECK(ones(value + "red.global.min.s32 [%d1+8], %r1;", "v100") == 1);
  CHECK(ones(value + "red.global.add.u32 [%d1], %r1;", "titanx-maxwell") == 0);
  CHECK(ones(value + "atom.global.add.u32 %r2, [%d1], %r1;\nst.global.u32 [%d1], %r2;") == 1);
  CHECK(ones(value + "atom.global.max.u32 %r2, [%d1], %r1;\nst.global.u32 [%d1], %r2;") == 0);
  CHECK(ones(value + "red.global.add.u64 [%d1], %d4;") == 0);
  // Lanes have addresses of their own, or ask what was there; sums of floating point are not the same.
  CHECK(ones(pointer + "mov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\n"
                       "red.global.add.u32 [%d3], 1;") == 0);
  CHECK(ones(pointer + "atom.global.max.u32 %r1, [%d1], 1;\nst.global.u32 [%d1], %r1;") == 0);
  CHECK(ones(pointer + "atom.global.add.u64 %d2, [%d1], 1;\nst.global.u64 [%d1], %d2;") == 0);
  CHECK(ones(pointer + "red.global.add.f32 [%d1], 0f3F800000;") == 0);
  CHECK(ones(pointer + "atom.global.exch.b32 %r1, [%d1], 1;") == 0);
}

/// As many as ptxas 13 makes of them: without the atomic itself and what it computes anyway.
TEST_CASE("Atomics_OfDifferentValues_TakeAsManyInstructionsAsTheAssembler") {
  const auto added = [](const std::string& lines, const std::string& device) {
    std::size_t count = 0;
    const Sample sample = Make("ld.param.u64 %d1, [a];\nmov.u32 %r1, %tid.x;\n" + lines, {"atomics"}, device);
    for (const Node& node : sample.kernel.blocks[0].nodes) count += node.is_part ? 1 : 0;
    return count;
  };
  const std::string reduces = "red.global.min.s32 [%d1], %r1;",
                    scans = "atom.global.add.u32 %r2, [%d1], %r1;\nst.global.u32 [%d1], %r2;";
  // A vote, the first of those there, whether that is this lane; the reduction, and its move.
  CHECK(added(reduces, "h200") == 5);
  // Vote, comparison, the other case and the branch; the lane's number and a comparison; five exchanges and minima.
  CHECK(added(reduces, "v100") == 16);
  // A move, and five exchanges, sums and moves; three instructions behind the atomic.
  for (const char* device : {"v100", "a100", "h200"}) CHECK(added(scans, device) == 4 + 2 + 16 + 3);
}

TEST_CASE("Guards_OfPredicates_AreThoseThatDecide") {
  const auto guards = [](const std::string& lines) {
    std::string text;
    const Sample sample = Make(lines, {"guards"});
    for (const lowering::Block& block : sample.kernel.blocks) {
      for (const Node& node : block.nodes) text += node.guards ? 'g' : '.';
    }
    return text;
  };
  CHECK(guards("setp.lt.s32 %p1, %r1, %r2;\n@%p1 st.global.u32 [%d1], %r1;") == "g..");
  CHECK(guards("setp.lt.s32 %p1, %r1, %r2;\n@%p1 bra L;\nst.global.u32 [%d1], %r1;\nL:") == "g...");
  // A selection reads it as an operand; what memory brings has its own way of being waited for.
  CHECK(guards("setp.lt.s32 %p1, %r1, %r2;\nselp.b32 %r3, %r1, %r2, %p1;\nst.global.u32 [%d1], %r3;") == "....");
  CHECK(guards("setp.lt.s32 %p1, %r1, %r2;\nsetp.lt.and.s32 %p2, %r1, 4, %p1;\n@%p2 st.global.u32 [%d1], %r3;") ==
        ".g..");
}

TEST_CASE("Prologue_OfAKernel_LoadsStackAndDescriptor") {
  const auto added = [](const std::string& lines, const std::string& device) {
    std::size_t count = 0;
    const Sample sample = Make(lines, {"prologue"}, device);
    for (const Node& node : sample.kernel.blocks[0].nodes) count += node.is_part ? 1 : 0;
    return count;
  };
  CHECK(added("st.global.u32 [%d1], %r1;", "h200") == 2);
  CHECK(added("st.global.u32 [%d1], %r1;", "v100") == 1);
  CHECK(added("st.shared.u32 [%r2], %r1;", "h200") == 4);
  CHECK(added("st.shared.u32 [%r2], %r1;", "v100") == 1);
}

TEST_CASE("Fuse_PairsOfInstructions_BecomeOne") {
  const auto left = [](const std::string& lines, const std::string& device = "h200") {
    std::size_t nodes = 0;
    const Sample sample = Make(lines, {"fuse"}, device);
    for (const lowering::Block& block : sample.kernel.blocks) nodes += block.nodes.size();
    return nodes - 1;  // the return
  };
  const std::string st = "\nst.u32 [%d9], %r3;", wide = "\nst.u64 [%d9], %d3;", fl = "\nst.f32 [%d9], %f3;";
  CHECK(left("mul.lo.s32 %r1, %r8, %r9;\nadd.s32 %r3, %r1, %r7;" + st) == 2);
  CHECK(left("shl.b32 %r1, %r8, 2;\nadd.s32 %r3, %r1, %r7;" + st) == 2);
  CHECK(left("add.s32 %r1, %r8, %r9;\nadd.s32 %r3, %r1, %r7;" + st) == 2);
  CHECK(left("add.s32 %r1, %r8, %r9;\nadd.s32 %r3, %r1, %r7;" + st, "k20c") == 3);
  CHECK(left("and.b32 %r1, %r8, %r9;\nxor.b32 %r3, %r1, %r7;" + st) == 2);
  CHECK(left("mul.wide.s32 %d1, %r8, 4;\nadd.s64 %d3, %d1, %d7;" + wide) == 2);
  CHECK(left("mul.wide.s32 %d1, %r8, 4;\nadd.s64 %d3, %d1, %d7;" + wide, "titanx-maxwell") == 3);
  CHECK(left("cvt.s64.s32 %d1, %r8;\nshl.b64 %d2, %d1, 2;\nadd.s64 %d3, %d2, %d7;" + wide) == 2);
  CHECK(left("mul.f32 %f1, %f8, %f9;\nadd.f32 %f3, %f1, %f7;" + fl) == 2);
  // An index by which two addresses are made.
  CHECK(left("mul.wide.s32 %d1, %r8, 4;\nadd.s64 %d3, %d1, %d7;\nadd.s64 %d4, %d1, %d8;\nst.u64 [%d4], %d4;" + wide) ==
        4);
  // Down, too; a constant that is added to each of two; of 64 bits; an index that is widened; without a sign; bits of
  // it.
  CHECK(left("shr.u32 %r1, %r8, 5;\nadd.s32 %r3, %r1, %r7;" + st) == 2);
  CHECK(left("shr.u32 %r1, %r8, 5;\nadd.s32 %r3, %r1, %r7;" + st, "titanx-maxwell") == 3);
  CHECK(left("add.s32 %r1, %r8, 9;\nadd.s32 %r3, %r1, %r7;\nadd.s32 %r4, %r1, %r6;\nst.u32 [%d8], %r4;" + st) == 4);
  CHECK(left("shl.b64 %d1, %d8, 2;\nadd.s64 %d3, %d1, %d7;" + wide) == 2);
  CHECK(left("cvt.s64.s32 %d1, %r8;\nadd.s64 %d3, %d1, %d7;" + wide) == 2);
  CHECK(left("neg.f32 %f1, %f8;\nfma.rn.f32 %f3, %f1, %f7, %f6;" + fl) == 2);
  CHECK(left("and.b32 %r1, %r8, 31;\nsetp.eq.s32 %p1, %r1, 0;\nselp.b32 %r3, %r7, %r6, %p1;" + st) == 3);
  // It rounds in between; another reads it; its source has changed.
  CHECK(left("mul.rn.f32 %f1, %f8, %f9;\nadd.f32 %f3, %f1, %f7;" + fl) == 3);
  CHECK(left("mul.lo.s32 %r1, %r8, %r9;\nadd.s32 %r3, %r1, %r7;\nst.u32 [%d8], %r1;" + st) == 4);
  CHECK(left("mul.lo.s32 %r1, %r8, %r9;\nld.u32 %r9, [%d8];\nadd.s32 %r3, %r1, %r9;" + st) == 4);
}

TEST_CASE("Conversions_OfIntegers_AreFreeOrLogic") {
  const auto of = [](const std::string& line) {
    const Sample sample = Make(line, {"conversions"});
    const Node& node = sample.kernel.blocks[0].nodes[0];
    return node.is_free ? "free" : node.shape.op == trace::OpClass::kInt ? "logic" : "slow";
  };
  CHECK(of("cvt.u64.u32 %d1, %r1;") == std::string("free"));
  CHECK(of("cvt.u32.u64 %r1, %d1;") == std::string("free"));
  CHECK(of("mov.b64 %d1, {%r1, %r2};") == std::string("free"));
  CHECK(of("cvt.s64.s32 %d1, %r1;") == std::string("logic"));
  CHECK(of("@%p1 cvt.u64.u32 %d1, %r1;") == std::string("logic"));
  CHECK(of("cvt.rn.f32.s32 %f1, %r1;") == std::string("slow"));
}

TEST_CASE("Lower_FreeNodes_AreWaitedThrough") {
  const Sample sample = Make(
      "add.s32 %r1, %r2, %r3;\ncvt.u64.u32 %d1, %r1;\nmul.lo.s64 %d2, %d1, %d3;\n"
      "st.u64 [%d9], %d2;",
      {});
  const auto device = sim::LoadDevice("h200");
  const Pass conversions = *std::ranges::find(lowering::Passes(), std::string_view("conversions"), &Pass::name);
  const lowering::Lowered lowered = lowering::Lower(sample.code, *device, std::span(&conversions, 1));
  REQUIRE(lowered.code.instructions.size() == 4);  // with the return
  const auto operands = [&](std::size_t i) {
    return lowered.code.operands.begin() + lowered.code.instructions[i].operands;
  };
  CHECK(*operands(0) == *(operands(1) + 1));  // the sum, read by the product
}

TEST_CASE("Immediates_ThatAreStored_AreMovedIntoRegisters") {
  const auto moves = [](const std::string& lines) {
    std::size_t count = 0;
    const Sample sample = Make(lines, {"immediates"});
    for (const Node& node : sample.kernel.blocks[0].nodes) count += node.is_part ? 1 : 0;
    return count;
  };
  CHECK(moves("st.global.u32 [%d1], 7;\nst.global.u32 [%d1+4], 7;\nst.global.u32 [%d1+8], 9;") == 2);
  CHECK(moves("st.global.u32 [%d1], 0;\nst.global.u32 [%d1+4], %r1;") == 0);
  CHECK(moves("red.global.add.u32 [%d1], 1;") == 1);
}

TEST_CASE("Expansions_OfDivisions_AreSequences") {
  const auto count = [](const std::string& line, const std::string& device = "h200") {
    return Make(line, {"expansions"}, device).kernel.blocks[0].nodes.size() - 1;
  };
  CHECK(count("rem.u32 %r1, %r2, %r3;") == 16);
  CHECK(count("div.rn.f32 %f1, %f2, %f3;") == 10);
  CHECK(count("ex2.approx.ftz.f32 %f1, %f2;") == 1);
  CHECK(count("ex2.approx.f32 %f1, %f2;") == 4);
  CHECK(count("bfe.u32 %r1, %r2, 3, 4;") == 2);
  CHECK(count("bfe.u32 %r1, %r2, 3, 4;", "k20c") == 1);
  CHECK(count("add.s32 %r1, %r2, %r3;") == 1);
  // Each waits for the one before.
  const Sample sample = Make("rem.u32 %r1, %r2, %r3;", {"expansions"});
  for (std::size_t i = 1; i < 16; ++i) {
    CHECK(sample.kernel.blocks[0].nodes[i].waits_for ==
          std::vector<Term>(sample.kernel.blocks[0].nodes[i - 1].results));
  }
}

/// Its regions, as their blocks, optional ones in brackets, and where they go on.
std::string RegionsOf(const Sample& sample) {
  std::string text;
  for (const lowering::Region& region : sample.kernel.regions) {
    text += text.empty() ? "" : "; ";
    for (const lowering::Region::Part& part : region.parts)
      text += part.optional ? "[" + std::to_string(part.block) + "]" : std::to_string(part.block);
    if (region.next != lowering::Region::kNoBlock) text += ">" + std::to_string(region.next);
  }
  return text;
}

TEST_CASE("Predicates_ShortBranches_RunAsOne") {
  const auto regions = [](const std::string& lines) { return RegionsOf(Make(lines, {"predicates"})); };
  const std::string lanes = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 9;\n", add = "add.f32 %f1, %f1, %f2;\n";
  const auto adds = [&](int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += add;
    return text;
  };
  CHECK(regions(lanes + "@%p1 bra L;\n" + adds(7) + "L:\nst.f32 [%d1], %f1;") == "0[1]2");
  CHECK(regions(lanes + "@%p1 bra L;\n" + adds(8) + "L:\nst.f32 [%d1], %f1;") == "");
  // A condition that all lanes have alike: fewer. Two sides. Blocks with a barrier are not predicated.
  const std::string warp = "mov.u32 %r1, %ctaid.x;\nsetp.lt.u32 %p1, %r1, 9;\n";
  CHECK(regions(warp + "@%p1 bra L;\n" + adds(4) + "L:\nst.f32 [%d1], %f1;") == "0[1]2");
  CHECK(regions(warp + "@%p1 bra L;\n" + adds(5) + "L:\nst.f32 [%d1], %f1;") == "");
  CHECK(regions(lanes + "@%p1 bra E;\n" + add + "bra L;\nE:\n" + add + "L:\nst.f32 [%d1], %f1;") == "0[1][2]3");
  CHECK(regions(lanes + "@%p1 bra L;\nbar.sync 0;\nL:\nst.f32 [%d1], %f1;") == "");
  // A loop begins where the lanes go on; blocks that follow each other.
  CHECK(regions(lanes + "@%p1 bra L;\n" + add + "L:\n" + adds(9) + "@%p2 bra L;") == "0[1]>2");
  CHECK(regions(adds(2) + "bra L;\nL:\nst.f32 [%d1], %f1;") == "01");
}

TEST_CASE("Regions_OfPredicatedBlocks_WaitForTheCondition") {
  const Sample sample = Make(
      "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\nadd.f32 %f1, %f1, %f2;\n"
      "L:\nst.f32 [%d1], %f1;",
      {"predicates", "regions"});
  REQUIRE(sample.kernel.regions.size() == 1);
  const std::vector<Node>& nodes = sample.kernel.blocks[sample.kernel.regions[0].code].nodes;
  REQUIRE(nodes.size() == 5);  // no branch
  CHECK(nodes[2].predicated);
  CHECK(nodes[2].partial());
  CHECK(nodes[2].part == 1);
  CHECK(nodes[2].waits_for == nodes[1].results);
  CHECK(!nodes[3].predicated);
}

TEST_CASE("Convergence_OfLanesThatPart_TakesTwoInstructions") {
  const auto added = [](const std::string& lines, const std::string& device = "h200") {
    std::string text;
    const Sample sample = Make(lines, {"predicates", "convergence"}, device);
    for (const lowering::Block& block : sample.kernel.blocks) {
      const auto parts = std::ranges::count_if(block.nodes, &Node::is_part);
      text += std::to_string(parts);
    }
    return text;
  };
  std::string body;
  for (int i = 0; i < 9; ++i) body += "add.f32 %f1, %f1, %f2;\n";
  const std::string lanes = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 9;\n", end = "L:\nst.f32 [%d1], %f1;";
  CHECK(added(lanes + "@%p1 bra L;\n" + body + end) == "101");
  CHECK(added(lanes + "@%p1 bra L;\n" + body + end, "k20c") == "100");
  CHECK(added("mov.u32 %r1, %ctaid.x;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\n" + body + end) == "000");
  // A predicate; lanes that leave; a loop that lanes leave one after the other.
  CHECK(added(lanes + "@%p1 bra L;\nadd.f32 %f1, %f1, %f2;\n" + end) == "000");
  CHECK(added(lanes + "@%p1 bra L;\n" + body + "st.f32 [%d1], %f1;\nL:") == "000");
  CHECK(added("mov.u32 %r1, %tid.x;\nB:\n" + body + "add.s32 %r1, %r1, 32;\nsetp.lt.u32 %p1, %r1, 900;\n@%p1 bra B;\n" +
              end) == "101");
}

TEST_CASE("Pairs_Of64Bits_TakeTwoInstructions") {
  CHECK(After("add.s64 %d1, %d2, %d3;\nst.u64 [%d9], %d1;", {"pairs"}) == "add.s64 add.s64 st.u64 ret");
  CHECK(After("mul.lo.s64 %d1, %d2, %d3;\nst.u64 [%d9], %d1;", {"pairs"}) ==
        "mul.lo.s64 mul.lo.s64 mul.lo.s64 mul.lo.s64 st.u64 ret");
  CHECK(After("add.s32 %r1, %r2, %r3;\nmul.wide.s32 %d1, %r1, 4;\nst.u64 [%d9], %d1;", {"pairs"}) ==
        "add.s32 mul.wide.s32 st.u64 ret");
}

TEST_CASE("Balance_OfIntegers_UsesBothPipes") {
  const auto products = [](const std::string& lines, const std::string& device) {
    const Sample sample = Make(lines, {"balance"}, device);
    std::string text;
    for (const Node& node : sample.kernel.blocks[0].nodes)
      text += node.shape.op == trace::OpClass::kIntMul ? 'm' : node.shape.op == trace::OpClass::kInt ? 'i' : '.';
    return text;
  };
  const std::string adds = "add.s32 %r1, %r2, %r3;\nadd.s32 %r4, %r1, %r3;\nshl.b32 %r5, %r4, 2;\nadd.s32 %r6, %r5, 1;";
  CHECK(products(adds, "h200") == "imim.");
  CHECK(products(adds, "k40") == "iiii.");  // another pipe, but no such products
  CHECK(products(adds, "titanx-maxwell") == "iiii.");
  // Logic and comparisons stay; what is there of multiply-adds counts.
  CHECK(products("xor.b32 %r1, %r2, %r3;\nor.b32 %r4, %r1, %r3;\nadd.s32 %r5, %r4, 4;", "h200") == "iim.");
  CHECK(products("xor.b32 %r1, %r2, %r3;\nadd.s32 %r5, %r1, 4;\nmul.lo.s32 %r6, %r5, %r2;", "h200") == "iim.");
  // On an H200 a multiply-add of FP32 takes half of what one of integers does.
  CHECK(products("add.s32 %r1, %r2, 1;\nadd.s32 %r4, %r1, %r3;\nfma.rn.f32 %f1, %f2, %f3, %f1;\n"
                 "fma.rn.f32 %f1, %f2, %f3, %f1;",
                 "h200") == "ii...");
}

TEST_CASE("Order_Loads_ComeFirst") {
  CHECK(After("ld.global.f32 %f1, [%d1];\nfma.rn.f32 %f9, %f1, %f1, %f9;\nld.global.f32 %f2, [%d1+4];\n"
              "fma.rn.f32 %f9, %f2, %f2, %f9;\nst.global.f32 [%d2], %f9;",
              {"order"}) == "ld.global.f32 ld.global.f32+4 fma.rn.f32 fma.rn.f32 st.global.f32 ret");
  // Not over a store that may go there; over one that cannot: next to it, to other memory, or of what nobody writes.
  const auto behind_store = [](const std::string& store, const std::string& load) {
    const std::string name = load.substr(0, load.find(' '));
    return After(store + ";\n" + load + ";\nst.global.f32 [%d2+16], %f1;", {"order"}).starts_with(name);
  };
  CHECK(!behind_store("st.global.f32 [%d2], %f2", "ld.global.f32 %f1, [%d1]"));
  CHECK(!behind_store("st.global.v2.f32 [%d1], {%f2, %f2}", "ld.global.f32 %f1, [%d1+4]"));
  CHECK(!behind_store("st.f32 [%d2], %f2", "ld.shared.f32 %f1, [%r1]"));
  CHECK(behind_store("st.global.f32 [%d1], %f2", "ld.global.f32 %f1, [%d1+4]"));
  CHECK(behind_store("st.global.f32 [%d2], %f2", "ld.shared.f32 %f1, [%r1]"));
  CHECK(behind_store("st.global.f32 [%d2], %f2", "ld.global.nc.f32 %f1, [%d1]"));
  for (const char* fence :
       {"bar.sync 0", "membar.gl", "atom.global.add.u32 %r1, [%d2], 1", "ld.volatile.u32 %r1, [%d2]"})
    CHECK(!behind_store(fence, "ld.global.nc.f32 %f1, [%d1]"));
}

TEST_CASE("Order_RegistersAreFew_LoadsWait") {
  std::string lines;
  for (int i = 0; i < 16; ++i) {
    const std::string n = std::to_string(i);
    lines += "ld.global.f32 %f" + n + ", [%d1+" + std::to_string(4 * i) + "];\nadd.f32 %f19, %f19, %f" + n + ";\n";
  }
  lines += "st.global.f32 [%d1], %f19;";
  Sample sample = Make(lines, {});
  const auto device = sim::LoadDevice("h200");
  const auto loads_first = [&](std::uint32_t budget) {
    Kernel kernel = sample.kernel;
    lowering::Order(kernel, {.device = *device, .budget = budget});
    std::size_t loads = 0;
    while (kernel.blocks[0].nodes[loads].shape.op == trace::OpClass::kMemory) ++loads;
    return loads;
  };
  CHECK(loads_first(32) == 16);
  CHECK(loads_first(10) == 8);  // beside the pointer and the sum
  CHECK(loads_first(1) == 1);   // no more than the PTX has at a time anyway
}

}  // namespace gridloom
