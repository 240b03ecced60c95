// What a module has of a newer PTX than the tables: it is refused by name where it is launched, and only there.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/support/diagnostic.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

// A kernel that has the instruction, one that calls a function with it, and two that do not come to it.
std::string Module(const std::string& instruction, const std::string& version = "9.9") {
  const std::string registers = ".reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p<2>; .reg .b64 %rd<3>;\n";
  const std::string store = "ld.param.u64 %rd1, [out];\nst.global.u32 [%rd1], 7;\n";
  return ".version " + version + "\n.target sm_90\n.address_size 64\n.func odd() {\n" + registers + instruction +
         "\nret;\n}\n" + ".entry has(.param .u64 out) {\n" + registers + instruction + store + "ret;\n}\n" +
         ".entry calls(.param .u64 out) {\n" + registers + store + "call odd, ();\nret;\n}\n" +
         ".entry has_not(.param .u64 out) {\n" + registers + store + "ret;\n}\n" + ".entry skips(.param .u64 out) {\n" +
         registers + store + "bra END;\n" + instruction + "\nEND: ret;\n}\n";
}

using Named = std::vector<std::pair<std::string, std::string>>;  // an instruction and what the message has to name

void ExpectRefused(const Named& instructions, const std::string& version) {
  for (const std::string tiers : {"off", "interpret"}) {
    for (const auto& [instruction, name] : instructions) {
      INFO(instruction << " with tiers " << tiers);
      Engine::Options options;
      options.tiers = tiers;
      test::Executor executor(options);
      std::vector<std::uint32_t> out(1);
      const std::uint64_t device = executor.Upload(out);
      const auto launch = [&](const std::string& kernel) {
        executor.Upload(out);
        return executor.Launch(Module(instruction, version), kernel, {1, 1, 1}, {1, 1, 1},
                               test::ParamBlock().Add(device));
      };
      for (const char* kernel : {"has", "calls"}) {
        const LaunchFault fault = launch(kernel);
        INFO(fault.text);
        CHECK(fault.kind != FaultKind::kNone);
        CHECK(fault.text.find(name) != std::string::npos);
        executor.Download(device, out);
        CHECK(out[0] == 0);
      }
      for (const char* kernel : {"has_not", "skips"}) {
        const LaunchFault fault = launch(kernel);
        INFO(fault.text);
        CHECK(fault.kind == FaultKind::kNone);
        executor.Download(device, out);
        CHECK(out[0] == 7);
      }
    }
  }
}

}  // namespace

TEST_CASE("UnknownWords_AreRefusedByNameWhereTheyAreLaunched") {
  const Named instructions = {
      {"add.wibble.u32 %r1, %r2, %r3;", "add.wibble.u32"},
      {"sin.approx.3pi.ftz.f32 %f1, %f2;", ".3pi"},
      {"@%p1 cvt.rn.wobble::n2.f16x2.f32 %r1, %f2, %f3;", "wobble::n2"},
      {"quux.u32 %r1, %r2;", "quux"},
      {"add.u32 %r1, %r2, %r3, %r1;", "add.u32"},
      {"add.u4x8 %r1, %r2, %r3;", "u4x8"},
      {"set.eq.u8x4.u8x4 %r1, %r2, %r3;", "set.eq.u8x4.u8x4"},
      {"multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%rd2], %r1;", "multimem.cp.async.bulk"},
      {"mov.u32 %r1, %unheard_of;", "%unheard_of"}};
  ExpectRefused(instructions, "9.9");
}

// Words that other instructions have.
TEST_CASE("MisplacedWords_AreRefusedByNameWhereTheyAreLaunched") {
  const Named instructions = {{"add.relu.u32 %r1, %r2, %r3;", "does not take '.relu'"},
                              {"add.sat.u64 %rd1, %rd2, %rd1;", "does not take '.sat'"},
                              {"add.rn.rz.f32 %f1, %f2, %f3;", "does not take '.rz'"},
                              {"add.global.u32 %r1, %r2, %r3;", "does not take '.global'"},
                              {"mul.lo.u32.u32 %r1, %r2, %r3;", "does not take '.u32'"},
                              {"ld.rn.global.u32 %r1, [%rd1];", "does not take '.rn'"},
                              {"mov.sat.u32 %r1, %r2;", "does not take '.sat'"},
                              {"mad.lo.sat.s32 %r1, %r2, %r3, %r1;", "does not take '.sat'"},
                              {"cvt.relu.u32.f32 %r1, %f1;", "does not take '.relu'"},
                              {"shl.wrap.b32 %r1, %r2, %r3;", "does not take '.wrap'"},
                              {"bar.aligned.sync 0;", "does not take '.aligned'"}};
  ExpectRefused(instructions, "8.0");
}

// Words that no instruction has together.
TEST_CASE("ForbiddenCombinations_AreRefusedByNameWhereTheyAreLaunched") {
  const Named instructions = {
      {"ld.volatile.global.ca.u32 %r1, [%rd1];", "does not take '.ca'"},
      {"ld.relaxed.gpu.global.cv.u32 %r1, [%rd1];", "does not take '.cv'"},
      {"ld.volatile.global.L1::no_allocate.u32 %r1, [%rd1];", "does not take '.L1::no_allocate'"},
      {"ld.global.cg.L1::evict_last.u32 %r1, [%rd1];", "does not take '.L1::evict_last'"},
      {"ld.weak.global.nc.u32 %r1, [%rd1];", "does not take '.nc'"},
      {"ld.local.L2::128B.u32 %r1, [%rd1];", "does not take '.L2::128B'"},
      {"st.volatile.global.wb.u32 [%rd1], %r1;", "does not take '.wb'"},
      {"st.release.gpu.local.u32 [%rd1], %r1;", "does not take '.local'"},
      {"st.shared.L1::evict_first.u32 [%rd1], %r1;", "does not take '.L1::evict_first'"},
      {"fence.proxy.async.gpu;", "does not take '.gpu'"}};
  ExpectRefused(instructions, "8.2");
}

TEST_CASE("WordsThatNeedAnother_AreRefusedByNameWhereTheyAreLaunched") {
  const Named instructions = {
      {"ld.relaxed.global.u32 %r1, [%rd1];", "needs one of .cta, .cluster, .gpu, .sys with .relaxed"},
      {"ld.gpu.global.u32 %r1, [%rd1];", "needs one of .relaxed, .acquire with .gpu"},
      {"ld.nc.u32 %r1, [%rd1];", "needs .global with .nc"},
      {"ld.mmio.relaxed.gpu.global.u32 %r1, [%rd1];", "needs .sys with .mmio"},
      {"st.release.global.u32 [%rd1], %r1;", "needs one of .cta, .cluster, .gpu, .sys with .release"},
      {"fence.acq_rel;", "needs one of .cta, .cluster, .gpu, .sys"},
      {"fence.proxy;", "needs one of .alias, "},
      {"membar;", "needs one of .cta, .gl, .sys, .proxy"},
      {"max.xorsign.f32 %f1, %f2, %f1;", "needs .abs"},
      {"fma.f32 %f1, %f2, %f1, %f2;", "needs one of .rn, .rz, .rm, .rp"},
      {"div.f32 %f1, %f2, %f1;", "needs one of .approx, .full, .rn, .rz, .rm, .rp"},
      {"ex2.f32 %f1, %f2;", "needs .approx"},
      {"mul.u32 %r1, %r2, %r3;", "needs one of .lo, .hi, .wide"},
      {"cvt.u32.f32 %r1, %f1;", "needs one of .rni, .rzi, .rmi, .rpi"},
      {"cvt.f32.u32 %f1, %r1;", "needs one of .rn, .rz, .rm, .rp"},
      {"shf.l.b32 %r1, %r2, %r3, %r1;", "needs one of .clamp, .wrap"},
      {"setp.u32 %p1, %r1, %r2;", "needs one of .eq, .ne, "},
      {"prefetch.global [%rd1];", "needs one of .L1, .L2, "},
      {"red.global.u32 [%rd1], %r1;", "needs one of .and, .or, "}};
  ExpectRefused(instructions, "8.0");
}

// Operations that a type does not have.
TEST_CASE("OperationsOfAnotherType_AreRefusedByNameWhereTheyAreLaunched") {
  const Named instructions = {{"atom.global.add.b32 %r1, [%rd1], %r2;", "does not take '.add'"},
                              {"atom.global.add.s64 %rd1, [%rd1], %rd2;", "does not take '.add'"},
                              {"atom.global.inc.s32 %r1, [%rd1], %r2;", "does not take '.inc'"},
                              {"atom.global.and.u32 %r1, [%rd1], %r2;", "does not take '.and'"},
                              {"atom.global.exch.u32 %r1, [%rd1], %r2;", "does not take '.exch'"},
                              {"red.global.xor.s32 [%rd1], %r2;", "does not take '.xor'"},
                              {"redux.sync.and.u32 %r1, %r2, %r3;", "does not take '.and'"},
                              {"redux.sync.add.b32 %r1, %r2, %r3;", "does not take '.add'"},
                              {"set.eq.f16x2.u32 %r1, %r2, %r3;", "does not take '.eq'"},
                              {"st.shared.L2::cache_hint.u32 [%rd1], %r1, %rd2;", "does not take '.L2::cache_hint'"}};
  ExpectRefused(instructions, "8.0");
}

namespace {

/// What is wrong with an instruction, or nothing.
std::string WrongWith(const std::string& instruction) {
  const std::string text =
      ".version 8.6\n.target sm_100\n.address_size 64\n.entry k() {\n"
      ".reg .b16 %h<4>; .reg .f32 %f<4>; .reg .f64 %g<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n" +
      instruction + "\nret;\n}\n";
  DiagnosticSink parsed, sink;
  const auto module = ptx::ParseModule(text, parsed);
  if (parsed.has_errors()) return FormatDiagnostics(parsed, "ptx", text);
  for (const ptx::Statement& statement : module->functions.front().body->statements) {
    const auto* const found = std::get_if<ptx::Instruction>(&statement);
    if (found != nullptr && !ptx::VerifyInstruction(*module, *found, sink)) return sink.diagnostics().front().message;
  }
  return "";
}

}  // namespace

// Words that are those of the opcode, but of another one of its forms, or of other types.
TEST_CASE("WordsOfAnotherForm_AreRefusedByName") {
  const Named instructions = {
      {"cvt.relu.f16.f16 %h1, %h2;", "does not take '.relu'"},
      {"cvt.rn.ftz.f64.u32 %g1, %r1;", "does not take '.ftz'"},
      {"cvt.rna.f32.f64 %f1, %g1;", "does not take '.rna'"},
      {"cvt.sat.u32.u8 %r1, %h1;", "does not take '.sat'"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.and.u32 [%rd1], [%r1], %r2;", "needs .tensor"},
      {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u64 [%r1], [%r2], %r3, "
       "[%r1];",
       "does not take '.min'"},
      {"ld.shared.v8.b32 {%r1, %r2, %r3, %r1, %r2, %r3, %r1, %r2}, [%rd1];", "does not take '.v8'"},
      {"st.async.global.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];",
       "does not take '.mbarrier::complete_tx::bytes'"},
      {"st.bulk.weak.global [%rd1], %rd2, 0;", "does not take '.global'"},
      {"fence.proxy.async.shared;", "does not take '.shared'"},
      {"cvt.pack.sat.u16.s32.b32 %r1, %r2, %r3, %r1;", "u16"},
      {"cvt.rzi.f32.f16 %f1, %h1;", "does not take '.rzi'"},
      {"fence.proxy.alias.acq_rel.gpu;", "does not take '.acq_rel'"},
      {"fence.proxy.async::generic.acquire.cluster;", "needs .sync_restrict::shared::cluster"},
      {"max.abs.f32 %f1, %f2, %f3;", "needs .xorsign"},
      {"prefetch.const.L1 [%rd1];", "does not take '.L1'"},
      {"prefetch.local.L2::evict_last [%rd1];", "does not take '.L2::evict_last'"},
      {"cp.async.ca.shared::cluster.global [%r1], [%rd1], 16;", "does not take '.shared::cluster'"},
      {"cp.async.wait_all.noinc;", "does not take '.noinc'"},
      {"cp.async.bulk.commit_group.read;", "does not take '.read'"},
      {"cp.async.bulk.tensor.1d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
       "does not take '.im2col'"},
      {"mbarrier.init.parity.shared.b64 [%r1], 1;", "does not take '.parity'"},
      {"mbarrier.arrive.release.shared.b64 %rd1, [%r1];", "needs one of .cta, .cluster"},
      {"membar.gpu;", "does not take '.gpu'"},
      {"barrier.cluster.arrive.acquire;", "does not take '.acquire'"},
      {"tensormap.replace.tile.cp_fenceproxy.global.b1024.b32 [%rd1], %r1;", "does not take '.cp_fenceproxy'"},
      {"tex.level.1d.v4.f32.s32 {%f1, %f2, %f3, %f1}, [%rd1, {%r1}];", "takes 3 to 6 operands"},
      {"tex.grad.1d.v4.f32.s32 {%f1, %f2, %f3, %f1}, [%rd1, {%r1}], %f1;", "takes 4 to 6 operands"},
      {"txq.level.width.b32 %r1, [%rd1];", "takes 3 operands"},
      {"st.v2.global.u32 [%rd1], 5;", "a vector of 2"},
      {"lop3.xor.b32 %r1, %r2, %r3, %r1, 0x96;", "does not take '.xor'"},
      {"cp.async.bulk.shared::cta.global.bulk_group [%r1], [%rd1], %r2;", "to '.shared::cta' with a group"},
      {"cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%rd1], [%r1], %r2, [%r3];", "with a barrier"},
      {"cp.async.bulk.shared::cta.shared::cluster.mbarrier::complete_tx::bytes [%r1], [%r2], %r3, [%r1];",
       ".shared::cluster behind it"},
      {"mma.sync.aligned.m8n8k16.col.row.s32.s8.s8.s32 {%r1, %r2}, {%r1}, {%r2}, {%r1, %r2};", "has '.col' for A"},
      {"mad.wide.cc.u32 %rd1, %r2, %r3, %rd2;", "needs one of .lo, .hi with .cc"},
      {"vadd.s32.s32.s32.sat.add %r1.b2, %r2, %r3.b0, %r1;", "a whole register"},
      {"vmad.s32.s32.s32.po.shr7 %r1, %r2.h0, %r3.h1, -%r1;", "without '-' with .po"},
      {"st.async.mmio.relaxed.sys.global.u32 [%rd1], %r1;", "needs one of .mbarrier::complete_tx::bytes, .release"},
  };
  for (const auto& [instruction, wrong] : instructions) {
    INFO(instruction << ": " << WrongWith(instruction));
    CHECK(WrongWith(instruction).find(wrong) != std::string::npos);
  }
}

TEST_CASE("WordsOfAForm_AreTaken") {
  for (const char* const instruction :
       {"cvt.rn.relu.satfinite.bf16.f32 %h1, %f1;", "cvt.rn.ftz.bf16.f32 %h1, %f1;", "cvt.sat.s16.u16 %h1, %h2;",
        "cvt.rzi.ftz.sat.f32.f32 %f1, %f2;", "max.NaN.abs.f32 %f1, %f2, %f3, %f1;",
        "max.ftz.xorsign.abs.f32 %f1, %f2, %f3;", "prefetch.L2::evict_last [%rd1];", "fence.proxy.alias.release.sys;",
        "fence.mbarrier_init.release.cluster;", "cp.async.ca.shared.global.L2::128B [%r1], [%rd1], 4;",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 4;", "barrier.cluster.wait.acquire;", "membar.proxy.alias;",
        "st.async.release.gpu.global.u32 [%rd1], %r1;", "red.async.release.gpu.global.add.u32 [%rd1], %r1;",
        "st.async.mmio.release.sys.global.u32 [%rd1], %r1;", "st.global.v2.u32 [%rd1], {5, 6};",
        "vadd.s32.s32.s32.sat %r1.b2, %r2, %r3.b0, %r1;",
        "tex.level.1d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [%rd1, {%f1}], %f1;"}) {
    INFO(instruction);
    CHECK(WrongWith(instruction) == "");
  }
}

// What PTX 9.1 to 9.5 have that a device without multicast and fabric cannot do.
TEST_CASE("MulticastAndFabric_AreRefusedByNameWhereTheyAreLaunched") {
  const Named instructions = {
      {"multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], %r1;", "multimem.cp.async.bulk"},
      {"multimem.cp.reduce.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], %r1;",
       "multimem.cp.reduce.async.bulk"},
      {"multimem.st.async.release.sys.global.u32 [%rd1], %r1;", "multimem.st.async"},
      {"multimem.red.async.release.gpu.global.add.u32 [%rd1], %r1;", "multimem.red.async"},
      {"fabric.submit;", "fabric"},
      {"fabric.wait.sync_restrict::read 0;", "fabric"},
      {"mov.u64 %rd1, %perctamemoryoffset;", "'%perctamemoryoffset' needs a kernel with .minperctamemory"}};
  ExpectRefused(instructions, "9.5");
}

// PTX 9.4.
TEST_CASE("AtomicsOfSingles_TakeNoftz") {
  for (const std::string tiers : {"off", "interpret"}) {
    for (const std::string instruction :
         {"red.global.add.noftz.f32 [%rd1], %f1;", "atom.add.noftz.f32 %f2, [%rd1], %f1;",
          "red.global.add.noftz.v2.f32 [%rd1], {%f1, %f1};"}) {
      INFO(instruction << " with tiers " << tiers);
      Engine::Options options;
      options.tiers = tiers;
      test::Executor executor(options);
      std::vector<float> out = {1.5f, 0};
      const std::uint64_t device = executor.Upload(out);
      const std::string text =
          ".version 9.4\n.target sm_90\n.address_size 64\n.entry adds(.param .u64 out) {\n"
          ".reg .f32 %f<3>; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nmov.f32 %f1, 0f40100000;\n" +
          instruction + "\nret;\n}\n";
      const LaunchFault fault = executor.Launch(text, "adds", {1, 1, 1}, {1, 1, 1}, test::ParamBlock().Add(device));
      INFO(fault.text);
      CHECK(fault.kind == FaultKind::kNone);
      executor.Download(device, out);
      CHECK(out[0] == 3.75f);
    }
  }
}
