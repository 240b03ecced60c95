#include "rewriter/ptx/verifier.h"

#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/undefined_calls.h"
#include "tests/golden.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::ptx;

TEST_CASE("Verifier_AcceptsTheWholeCorpus") {
  for (const auto& file : ptx::testing::LoadCorpus()) {
    DiagnosticSink sink;
    const auto module = ParseModule(file.text, sink);
    const bool ok = VerifyModule(*module, sink);
    INFO(FormatDiagnostics(sink, file.path, file.text));
    CHECK(ok);
  }
}

TEST_CASE("Verifier_GoldenRejects") {
  gridloom::testing::CheckGoldenFolder(
      "tests/golden/ptx-verifier", ".ptx", [](const std::string& name, const std::string& input) {
        DiagnosticSink sink;
        const auto module = ParseModule(input, sink);
        INFO(FormatDiagnostics(sink, name, input));
        CHECK(!sink.has_errors());
        CHECK(VerifyModule(*module, sink) != name.starts_with("bad_"));
        return gridloom::testing::GoldenSections{{"diagnostics", FormatDiagnostics(sink, name, input)}};
      });
}

TEST_CASE("Verifier_UnknownWordsOfALaterVersion_AreWarnings") {
  const std::string body =
      "\n.target sm_90\n.address_size 64\n.entry k() { .reg .b32 %r<4>; quux.u32 %r1, %r2; add.odd.u32 %r1, %r2, %r3; "
      "ret; }\n";
  for (const auto& [version, ok] : {std::pair("9.0", false), std::pair("9.9", true)}) {
    DiagnosticSink sink;
    const auto module = ParseModule(".version " + std::string(version) + body, sink);
    CHECK(VerifyModule(*module, sink) == ok);
    CHECK(sink.diagnostics().size() == 2);
  }
}

TEST_CASE("Verifier_CompiledModules_MayKnowMoreThanTheTables_AndNothingElse") {
  const auto verify = [](const std::string& line) {
    DiagnosticSink sink;
    const auto module =
        ParseModule(".version 8.0\n.target sm_70\n.address_size 64\n.entry k() { .reg .b32 %r<4>; .reg .pred %p<2>; " +
                        line + " ret; }\n",
                    sink);
    REQUIRE(!sink.has_errors());
    const bool good = VerifyModule(*module, sink, PtxOrigin::kCompiled);
    return std::pair(good, sink.diagnostics().size());
  };
  CHECK(verify("mov.u32 %r1, %r2;") == std::pair(true, std::size_t{0}));
  CHECK(verify("quux.u32 %r1, %r2;") == std::pair(true, std::size_t{1}));
  CHECK(verify("add.odd.u32 %r1, %r2, %r3;") == std::pair(true, std::size_t{1}));
  CHECK(verify("mapa.u32 %r1, %r2, 0;") == std::pair(true, std::size_t{1}));  // of sm_90
  CHECK(verify("@%nobody bra L; L:").first == false);
  CHECK(verify("@%r1 bra L; L:").first == false);
  CHECK(verify("@%nobody quux.u32 %r1, %r2;").first == false);
  CHECK(verify("mov.u32 %r1, %nobody;").first == false);
  CHECK(verify("add.u32 %r1, %r2;").first == false);
}

TEST_CASE("Verifier_StopsAtTwentyErrors") {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n";
  for (int i = 0; i < 1000; ++i) text += "mov.u32 %x, 1;\n";
  DiagnosticSink sink;
  const auto module = ParseModule(text + "}\n", sink);
  CHECK(!VerifyModule(*module, sink));
  CHECK(sink.diagnostics().size() == DiagnosticSink::kMaxErrors);
}

// Instructions of PTX 9.1 to 9.5, each with the version that has it first, as ptxas 13.5 says. Whoever compiles a
// kernel asks of each whether it is known, whatever the module's version is.
TEST_CASE("Verifier_InstructionsOfLaterVersions_AreKnownOrDoubted") {
  const auto verify = [](const std::string& version, const std::string& target, const std::string& line, bool strict) {
    DiagnosticSink sink;
    const auto module = ParseModule(
        ".version " + version + "\n.target " + target +
            "\n.address_size 64\n.entry k() { .reg .b8 %b<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; "
            ".reg .f32 %f<4>; .reg .pred %p<4>; .local .b8 l[8];\n" +
            line + "\nret; }\n",
        sink);
    INFO(FormatDiagnostics(sink, "k", ""));
    REQUIRE(!sink.has_errors());
    if (!strict) return VerifyModule(*module, sink);
    for (const Statement& statement : module->functions.front().body->statements) {
      const auto* instruction = std::get_if<Instruction>(&statement);
      if (instruction != nullptr && !VerifyInstruction(*module, *instruction, sink)) return false;
    }
    return true;
  };
  for (const auto& [first, target, line] :
       {std::tuple("9.1", "sm_90", "ld.volatile.local.u32 %r1, [l];"),
        std::tuple("9.1", "sm_90", "st.volatile.local.u32 [l], %r1;"),
        std::tuple("9.2", "sm_120a", "add.u8x4 %r1, %r2, %r3;"),
        std::tuple("9.2", "sm_120a", "sub.sat.s8x4 %r1, %r2, %r3;"),
        std::tuple("9.2", "sm_120a", "min.relu.s8x4 %r1, %r2, %r3;"),
        std::tuple("9.2", "sm_120a", "neg.s8x4 %r1, %r2;"),
        std::tuple("9.2", "sm_120a", "add.sat.u16x2 %r1, %r2, %r3;"),
        std::tuple("9.2", "sm_120a", "add.sat.u32 %r1, %r2, %r3;"),
        std::tuple("9.2", "sm_100a", "cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 %r1, %h1, %h2;"),
        std::tuple("9.2", "sm_100a", "cvt.rn.scaled::n2::ue8m0.bf16x2.e2m1x2 %r1, %b1, %h2;"),
        std::tuple("9.3", "sm_90", "ld.mmio.acquire.sys.global.u32 %r1, [%d1];"),
        std::tuple("9.4", "sm_90", "ld.global.proxy::readonly.u32 %r1, [%d1];"),
        std::tuple("9.5", "sm_90a", "tensormap.query.alloc_class_large.global.b1024 %p1, [%d1];"),
        std::tuple("9.5", "sm_90", "sin.approx.2pi.ftz.f32 %f1, %f2;"),
        std::tuple("9.5", "sm_90", "cos.approx.2pi.ftz.f32 %f1, %f2;"),
        std::tuple("9.5", "sm_100", "mov.u32 %r1, %locality_domain_id;"),
        std::tuple("9.5", "sm_90", "fence.alias.sync_restrict::read.release.sys;"),
        std::tuple("9.1", "sm_120a", "cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 %h1, %f1, %f2, %h2;"),
        std::tuple("9.1", "sm_100a", "cvt.rn.relu.bf16x2.s2f6x2 %r1, %h1;"),
        std::tuple("9.1", "sm_90", "multimem.cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r2], %r1;"),
        std::tuple("9.3", "sm_90", "mbarrier.init.layout::v1.shared.b64 [%r1], 1;"),
        std::tuple("9.3", "sm_90", "mbarrier.check_layout.layout::v0.shared::cta.b64 %p1, [%r1];"),
        std::tuple("9.3", "sm_90", "mbarrier.try_wait.phase_type::primary.shared.b64 %p1|%p2, %b1, [%r1], %d1, %r2;"),
        std::tuple("9.3", "sm_90", "mbarrier.try_wait.phase_type::primary.shared.b64 %p1|%p2, [%r1], %d1, %r2;"),
        std::tuple("9.3", "sm_90", "mbarrier.test_wait.parity.phase_type::conditional.shared.b64 %p1, [%r1], %r2;"),
        std::tuple("9.3", "sm_90",
                   "cp.async.bulk.relaxed.gpu.shared::cta.global.mbarrier::complete_tx::bytes.b128 [%r1], [%d1], %r2, "
                   "[%r3];"),
        std::tuple("9.3", "sm_100", "fence.proxy.generic::fabric.alias.release.sys;"),
        std::tuple("9.4", "sm_90",
                   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::16b [%r1], "
                   "[%d1], %r2, [%r3], %h1;"),
        std::tuple("9.4", "sm_90",
                   "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32 [%d1], [%r1], %r2;"),
        std::tuple("9.4", "sm_90", "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster;"),
        std::tuple("9.4", "sm_90a", "ldmatrix.sync.aligned.m8n16.x2.shared.s8.s4 {%r1, %r2}, [%r3];"),
        std::tuple("9.4", "sm_90", "prefetch.global.L1::32B.valid_addr [%d1];"),
        std::tuple("9.4", "sm_100a", "add.e4m3x4.e2m1x4 %r1, %h2, %r3;"),
        std::tuple("9.4", "sm_100a", "sub.rn.e5m2x4.ue8m0x4.satfinite %r1, %r2, %r3;"),
        std::tuple("9.4", "sm_100a", "mul.e4m3x4.e5m2x4.e2m1p4x4 %r1, %r2, %r3;"),
        std::tuple("9.4", "sm_100a", "fma.rn.satfinite.e4m3x4.e3m2x4.e2m1x4 %r1, %r2, %h3, %r3;"),
        std::tuple("9.5", "sm_90", "cp.async.bulk.wait_group.sync_restrict::proxy::async 0;")}) {
    INFO(line);
    CHECK(verify(first, target, line, false));
    CHECK(verify(first, target, line, true));
    CHECK(!verify("9.0", target, line, false));
  }
  for (const char* line : {"quux.u32 %r1, %r2;", "add.odd.u32 %r1, %r2, %r3;", "add.u32 %r1, %r2;",
                           "mov.u32 %r1, %novelty;", "add.u4x8 %r1, %r2, %r3;", "fabric.submit;",
                           "mbarrier.init.layout::v2.shared.b64 [%r1], 1;", "sin.approx.3pi.ftz.f32 %f1, %f2;"}) {
    INFO(line);
    CHECK(verify("9.5", "sm_100a", line, false));
    CHECK(!verify("9.5", "sm_100a", line, true));
    CHECK(!verify("9.0", "sm_100a", line, false));
  }
  // What no version has.
  for (const char* line :
       {"bar.sync 16;", "bar.sync 1, 33;", "barrier.red.popc.u32 %r1, 0, 40, %p1;", "vote.all.pred %p1, %p2;",
        "shfl.idx.b32 %r1, %r2, 0, 31;", "setp.lt.b32 %p1, %r1, %r2;", "setp.lo.s32 %p1, %r1, %r2;",
        "set.num.u32.u32 %r1, %r1, %r2;", "atom.global.add.f16 %h1, [%d1], %h2;", "red.global.add.bf16x2 [%d1], %r2;",
        "mov.u32 %r1, nobody;"}) {
    INFO(line);
    CHECK(!verify("9.5", "sm_90", line, false));
    CHECK(!verify("9.0", "sm_90", line, false));
  }
}

// Words where they do not belong, and operands that words bring. Each pair differs in that alone; ptxas 13.5 takes the
// first and refuses the second.
TEST_CASE("Verifier_WordsAndTheirOperands_StandWhereTheyBelong") {
  const auto takes = [](const std::string& target, const std::string& line) {
    DiagnosticSink sink;
    const auto module =
        ParseModule(".version 9.5\n.target " + target +
                        "\n.address_size 64\n.entry k() { .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 "
                        "%f<9>; .reg .pred %p<4>; .reg .b128 %q;\nt: .branchtargets L;\n" +
                        line + "\nL: ret; }\n",
                    sink);
    REQUIRE(!sink.has_errors());
    for (const Statement& statement : module->functions.front().body->statements) {
      const auto* instruction = std::get_if<Instruction>(&statement);
      if (instruction != nullptr && !VerifyInstruction(*module, *instruction, sink)) return false;
    }
    return true;
  };
  struct Pair {
    std::string target, right, wrong;
  };
  const std::string mma = "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};";
  for (const Pair& pair :
       {Pair{"sm_90", "div.full.ftz.f32 %f1, %f2, %f3;", "div.ftz.full.f32 %f1, %f2, %f3;"},
        Pair{"sm_90", "brx.idx.uni %r1, t;", "brx.uni.idx %r1, t;"},
        Pair{"sm_90", "barrier.arrive.aligned 1, 64;", "barrier.aligned.arrive 1, 64;"},
        Pair{"sm_90", "cp.async.cg.shared.global [%r1], [%d1], 16;", "cp.async.cg.global.shared [%r1], [%d1], 16;"},
        Pair{"sm_90", "cp.async.cg.shared.global [%r1], [%d1], 16;", "cp.async.cg.shared.global [%r1], [%d1], 8;"},
        Pair{"sm_90", "cp.async.ca.shared.global [%r1], [%d1], 8;", "cp.async.ca.shared.global [%r1], [%d1], 12;"},
        Pair{"sm_90", "cp.async.ca.shared.global.L2::cache_hint [%r1], [%d1], 4, %d2;",
             "cp.async.ca.shared.global.L2::cache_hint [%r1], [%d1], 4;"},
        Pair{"sm_90", "cp.async.ca.shared.global.L2::cache_hint [%r1], [%d1], 4, %r2, %d2;",
             "cp.async.ca.shared.global.L2::cache_hint [%r1], [%d1], 4, %r2;"},
        Pair{"sm_90",
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1], %r2, "
             "[%r3], %h1;",
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1], %r2, "
             "[%r3];"},
        Pair{"sm_90", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%d1], [%r1], %r2;",
             "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.u32 [%d1], [%r1], %r2;"},
        Pair{"sm_90", "cp.async.bulk.wait_group.read 2;",
             "cp.async.bulk.wait_group.read.sync_restrict::proxy::async 2;"},
        Pair{"sm_90", "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d1;",
             "createpolicy.fractional.L2::evict_unchanged.L2::evict_last.b64 %d1;"},
        Pair{
            "sm_90",
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%r1], 128;",
            "tensormap.cp_fenceproxy.shared::cta.global.tensormap::generic.release.gpu.sync.aligned [%d1], [%r1], "
            "128;"},
        Pair{"sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 " + mma,
             "mma.sync.aligned.m16n8k32.row.col.e4m3.e5m2.f32.f32 " + mma},
        Pair{"sm_90",
             "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};",
             "wmma.mma.popc.xor.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};"},
        Pair{"sm_90", "tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r5, %r6, %r7, %r8}];",
             "tex.2dms.v4.s32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%r5, %r6, %r7, %r8}];"},
        Pair{"sm_100a", "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {%r1, %r2}, [%r5];",
             "ldmatrix.sync.aligned.m8n16.x2.shared.b6x16_p32.b8x16 {%r1, %r2}, [%r5];"},
        Pair{"sm_100a", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32 {%r1, %r2}, [%r5];",
             "ldmatrix.sync.aligned.m8n16.x2.trans.shared.b8x16.b6x16_p32 {%r1, %r2}, [%r5];"},
        Pair{"sm_100", "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q;",
             "clusterlaunchcontrol.query_cancel.is_canceled.b128.pred %p1, %q;"},
        Pair{"sm_100",
             "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];",
             "clusterlaunchcontrol.try_cancel.shared::cta.async.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];"},
        Pair{"sm_100a", "tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;",
             "tcgen05.mma.cta_group::1.ws.kind::f16 [%r1], %d1, %d2, %r2, %p1;"}}) {
    INFO(pair.right << " and " << pair.wrong);
    CHECK(takes(pair.target, pair.right));
    CHECK(!takes(pair.target, pair.wrong));
  }
}

// Each pair was asked of ptxas 13.5.
TEST_CASE("Verifier_OperandsOfAnotherKind_AreRefused") {
  const auto takes = [](const std::string& line) {
    DiagnosticSink sink;
    const auto module = ParseModule(
        ".version 9.5\n.target sm_100a\n.address_size 64\n.entry k() { .reg .b32 %r<9>; .reg .b64 %d<9>; "
        ".reg .b16 %h<9>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .b8 %c<9>; .reg .u16 %u<9>; .reg .f16x2 %q<9>; "
        ".shared .b32 s; " +
            line + " ret; }\n",
        sink);
    if (sink.has_errors()) return false;
    for (const Statement& statement : module->functions.front().body->statements) {
      const auto* instruction = std::get_if<Instruction>(&statement);
      if (instruction != nullptr && !VerifyInstruction(*module, *instruction, sink)) return false;
    }
    return true;
  };
  const std::pair<std::string, std::string> pairs[] = {
      {"ld.global.v4.f32 {%r1, %r2, %r3, %r4}, [%d1];", "ld.global.v4.u32 {%f1, %f2, %f3, %f4}, [%d1];"},
      {"ld.global.v2.b64 {%g1, %g2}, [%d1];", "ld.global.v2.u64 {%g1, %g2}, [%d1];"},
      {"st.global.v2.u32 [%d1], {%q1, %q2};", "st.global.v2.f32 [%d1], {%q1, %q2};"},
      {"tex.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d1, {%f5, %f6}];",
       "tex.2d.v4.u32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5, %f6}];"},
      {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%r5, %f6}];",
       "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%d5, %d6}];"},
      {"tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r5, %r6}];",
       "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%f5, %f6}];"},
      {"cvt.f32.bf16 %f1, %h2;", "cvt.f32.bf16 %f1, %r2;"},
      {"cvt.rn.bf16.f32 %h1, %f2;", "cvt.rn.bf16.f32 %r1, %f2;"},
      {"cvt.rn.bf16.u8 %h1, %c2;", "cvt.rn.bf16.u8 %h1, %h2;"},
      {"cvt.rzi.s8.bf16 %c1, %h2;", "cvt.rzi.sat.s8.bf16 %c1, %h2;"},
      {"cvt.rn.f16x2.f32 %d1, %f2, %f3;", "cvt.rn.bf16x2.f32 %d1, %f2, %f3;"},
      {"cvt.rn.satfinite.e4m3x2.f32 %h1, %f2, %f3;", "cvt.rn.satfinite.e4m3x2.f32 %r1, %f2, %f3;"},
      {"cvt.rna.tf32.f32 %r1, %f2;", "cvt.rna.tf32.f32 %d1, %f2;"},
      {"add.bf16 %h1, %h2, %h3;", "add.bf16 %h1, %u2, %h3;"},
      {"mov.b32 %f1, %tid.x;", "mov.f32 %f1, %tid.x;"},
      {".reg .v4 .b32 %tid; mov.b32 %r1, %tid.x;", ".reg .b32 %tid; mov.b32 %r1, %tid.x;"},
      {"mov.u16 %u1, %tid.x;", "mov.u64 %d1, %tid.x;"},
      // Vectors as a whole, packed and unpacked.
      {".reg .v2 .b32 %v; mov.b64 %d1, %v;", ".reg .v2 .b32 %v; mov.u64 %d1, %v;"},
      {".reg .v2 .f32 %v; mov.b64 %v, %d1;", ".reg .v2 .f32 %v; mov.s64 %v, %d1;"},
      {".reg .v2 .b16 %v; mov.b32 %r1, %v;", ".reg .v2 .b16 %v; mov.b64 %d1, %v;"},
      {".reg .v2 .b8 %v; mov.b16 %h1, %v;", ".reg .v2 .b8 %v; add.u16 %h1, %v, %h2;"},
      {".reg .v2 .b32 %v; mov.b64 %v, 5;", ".reg .v2 .b32 %v; .reg .v2 .u32 %w; mov.b64 %v, %w;"},
      {"mov.u32 %r1, s;", "mov.f32 %r1, s;"},
      {"ld.global.u32 %r1, [%d1].unified;", "ld.shared.u32 %r1, [%d1].unified;"},
      {"ld.global.L2::cache_hint.u32 %r1, [%d1], %d2;", "ld.global.u32 %r1, [%d1], %d2;"},
      {"st.global.L2::cache_hint.u32 [%d1], %r1, %d2;", "st.global.u32 [%d1], %r1, %d2;"},
      {"atom.global.and.b64 %d1, [%d2], %d3;", "atom.global.and.b64 %d1, [%d2], %d3, %d4;"},
      {"red.global.L2::cache_hint.add.u32 [%d1], %r2, %d3;", "red.shared.L2::cache_hint.add.u32 [%d1], %r2, %d3;"},
      {"cp.async.ca.shared.global.L2::cache_hint [%r1], [%d1], 4, %d2;",
       "cp.async.ca.shared.global [%r1], [%d1], 4, %d2;"},
      {"atom.add.v2.f32 {%f1, %f2}, [%d1], {%f3, %f4};", "atom.add.v2.u32 {%r1, %r2}, [%d1], {%r3, %r4};"},
      {"vset2.s32.u32.lo %r1, %r2, %r3, %r4;", "vset2.u32.s32.lo %r1, %r2, %r3, %r4;"},
      {"vset4.u32.u32.hs %r1, %r2, %r3, %r4;", "vset4.u32.u32.nan %r1, %r2, %r3, %r4;"},
      {"mbarrier.arrive.shared::cluster.b64 _, [%r2];", "mbarrier.arrive.shared::cluster.b64 %d1, [%r2];"},
      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s64 [%r1], %d2, [%r3];",
       "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s64 [%r1], %d2, [%r3];"},
      {"red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [%d1], %r2, [%d3];",
       "red.async.mbarrier::complete_tx::bytes.add.u32 [%d1], %r2, [%d3];"},
      {"red.async.mmio.release.sys.global.add.s64 [%d1], %d2;",
       "red.async.mmio.release.gpu.global.add.s64 [%d1], %d2;"},
      {"red.async.release.gpu.global.add.u32 [%d1], %r1;", "red.async.mmio.release.sys.shared.add.u32 [%d1], %r1;"},
  };
  for (const auto& [right, wrong] : pairs) {
    INFO(right << " and " << wrong);
    CHECK(takes(right));
    CHECK(!takes(wrong));
  }
}

// Of a kernel as a whole.
TEST_CASE("Verifier_DirectivesThatContradict_AreRefused") {
  const auto verify = [](const std::string& directives) {
    DiagnosticSink sink;
    const auto module =
        ParseModule(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() " + directives + " { ret; }\n", sink);
    return !sink.has_errors() && VerifyModule(*module, sink);
  };
  CHECK(verify(".maxntid 64"));
  CHECK(verify(".reqntid 64 .maxnreg 32"));
  CHECK(!verify(".maxntid 64 .reqntid 64"));
  CHECK(!verify(".maxnreg 0"));
  CHECK(verify(".reqntid 32, 2, 1 .minnctapersm 1 .explicitcluster .reqnctapercluster 2"));
  CHECK(!verify(".maxntid 0"));
  CHECK(!verify(".reqntid 32, 0"));
  CHECK(!verify(".minnctapersm 0"));
  CHECK(!verify(".maxntid 1, 1, 1, 1"));
  CHECK(!verify(".maxntid"));
  CHECK(!verify(".reqnctapercluster 2 .maxclusterrank 4"));
  CHECK(!verify(".blocksareclusters .maxntid 32 .reqnctapercluster 2"));
  CHECK(!verify(".noreturn"));
  CHECK(!verify(".maxntid 64 .maxnctapersm 2"));
}

TEST_CASE("Verifier_DeclarationsThatDiffer_AreRefused") {
  const auto verify = [](const std::string& functions) {
    DiagnosticSink sink;
    const auto module =
        ParseModule(".version 8.0\n.target sm_90\n.address_size 64\n" + functions + "\n.entry k() { ret; }\n", sink);
    return !sink.has_errors() && VerifyModule(*module, sink);
  };
  const std::string one = ".func (.param .b32 r) f(.param .b32 a, .param .align 4 .b8 b[8]);\n";
  CHECK(verify(one + one + ".func (.param .b32 q) f(.param .b32 c, .param .align 4 .b8 d[8]) { ret; }"));
  CHECK(!verify(one + ".func (.param .b32 r) f(.param .b32 a, .param .align 4 .b8 b[12]) { ret; }"));
  CHECK(!verify(one + ".func (.param .b32 r) f(.param .f32 a, .param .align 4 .b8 b[8]) { ret; }"));
  CHECK(!verify(one + ".func (.param .b32 r) f(.reg .b32 a, .param .align 4 .b8 b[8]) { ret; }"));
  CHECK(!verify(one + ".func (.param .b32 r) f(.param .b32 a) { ret; }"));
  CHECK(!verify(one + ".func f(.param .b32 a, .param .align 4 .b8 b[8]) { ret; }"));
  CHECK(!verify(".func f();\n.entry f() { ret; }"));
}

// As ptxas 13.0 takes them.
TEST_CASE("Verifier_AliasesOfWhatHasNone_AreRefused") {
  const auto verify = [](const std::string& functions) {
    DiagnosticSink sink;
    const auto module =
        ParseModule(".version 9.0\n.target sm_90\n.address_size 64\n" + functions + "\n.entry k() { ret; }\n", sink);
    return !sink.has_errors() && VerifyModule(*module, sink);
  };
  const std::string f = ".visible .func f(.reg .b32 x) { ret; }\n", g = ".visible .func g(.reg .b32 x);\n",
                    h = ".visible .func h(.reg .b32 x);\n";
  CHECK(verify(f + g + ".alias g, f;"));
  CHECK(verify(f + g + h + ".alias g, f;\n.alias h, g;"));  // a call of h would be one of nobody
  CHECK(!verify(f + ".alias g, f;"));
  CHECK(!verify(g + ".alias g, g;"));
  CHECK(!verify(g + h + ".alias g, h;"));
  CHECK(!verify(f + g + ".visible .func e(.reg .b32 x) { ret; }\n.alias g, f;\n.alias g, e;"));
  CHECK(!verify(f + ".visible .func g(.reg .b32 x) { ret; }\n.alias g, f;"));
  CHECK(!verify(f + ".visible .func g(.reg .f32 x);\n.alias g, f;"));
  CHECK(!verify(".weak .func f(.reg .b32 x) { ret; }\n" + g + ".alias g, f;"));
  CHECK(!verify(".visible .entry f() { ret; }\n.visible .func g();\n.alias g, f;"));
}

TEST_CASE("Verifier_CallsOfAnAliasOfAnAlias_AreOfNobody") {
  const auto undefined = [](const std::string& called) {
    DiagnosticSink sink;
    const auto module = ParseModule(
        ".version 9.0\n.target sm_90\n.address_size 64\n.func f() { ret; }\n.func g();\n.func h();\n"
        ".alias g, f;\n.alias h, g;\n.entry k() { call " +
            called + "; ret; }\n",
        sink);
    return FindUndefinedCall(*module, [](std::string_view) { return false; }).has_value();
  };
  CHECK(!undefined("g"));
  CHECK(undefined("h"));
}

TEST_CASE("UndefinedCall_AddressesOfFunctionsCount") {
  const auto undefined = [](const std::string& body, const std::string& more = "") {
    DiagnosticSink sink;
    const auto module =
        ParseModule(".version 9.0\n.target sm_90\n.address_size 64\n.func missing();\n.func there() { ret; }\n" + more +
                        ".entry k() { .reg .b64 %d; " + body + " ret; }\n",
                    sink);
    REQUIRE(!sink.has_errors());
    return FindUndefinedCall(*module, [](std::string_view) { return false; }).has_value();
  };
  const std::string taker = ".func taker() { .reg .b64 %d; mov.u64 %d, missing; ret; }\n";
  CHECK(!undefined("mov.u64 %d, there;"));
  CHECK(undefined("mov.u64 %d, missing;"));
  CHECK(!undefined("", taker));
  CHECK(undefined("call taker;", taker));
  CHECK(undefined("mov.u64 %d, taker;", taker));
}
