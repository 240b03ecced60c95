#include "rewriter/analysis/cfg.h"

#include <catch2/catch.hpp>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/analysis/dominators.h"
#include "rewriter/analysis/liveness.h"
#include "rewriter/analysis/loops.h"
#include "rewriter/ptx/parser.h"
#include "tests/rewriter/analysis/parse.h"
#include "tests/rewriter/ptx/corpus.h"

namespace gridloom::analysis {
namespace {

using testing::ParseItems;
using testing::ParseKernel;

std::vector<NodeId> Successors(const Cfg& cfg, BlockId block) { return cfg.graph().successors[block]; }

}  // namespace

TEST_CASE("Cfg_GuardedBranch_NextThenTarget", "[analysis]") {
  const auto module = ParseKernel("@%p1 bra L;\nmov.u32 %r1, 0;\nL: ret;");
  const Cfg cfg(*module->FindFunction("k"));
  REQUIRE(cfg.blocks().size() == 3);
  CHECK(Successors(cfg, 0) == std::vector<NodeId>{1, 2});
  CHECK(cfg.blocks()[0].end == BlockEnd::kBranch);
  CHECK(cfg.blocks()[1].end == BlockEnd::kFallthrough);
  CHECK(cfg.blocks()[2].end == BlockEnd::kReturn);
  CHECK(cfg.Leaves(2));
  CHECK_FALSE(cfg.Leaves(1));
}

TEST_CASE("Cfg_IndexedBranch_GoesToEveryTargetOnce", "[analysis]") {
  const auto module = ParseKernel("ts: .branchtargets A, B, A;\nbrx.idx %r1, ts;\nA: exit;\nB: bra A;");
  const Cfg cfg(*module->FindFunction("k"));
  REQUIRE(cfg.blocks().size() == 3);
  CHECK(Successors(cfg, 0) == std::vector<NodeId>{1, 2});
  CHECK(cfg.unresolved_branch() == nullptr);
  CHECK(cfg.blocks()[1].end == BlockEnd::kExit);
}

TEST_CASE("Cfg_GuardedExit_GoesOn", "[analysis]") {
  const auto module = ParseKernel("@%p1 exit;\n@!%p2 ret;\ntrap;");
  const Cfg cfg(*module->FindFunction("k"));
  REQUIRE(cfg.blocks().size() == 3);
  CHECK(Successors(cfg, 0) == std::vector<NodeId>{1});
  CHECK(cfg.GuardedLeaves() == std::vector<BlockId>{0, 1});
  CHECK(cfg.blocks()[2].end == BlockEnd::kTrap);
  CHECK(Successors(cfg, 2).empty());
}

TEST_CASE("Cfg_NestedScopes_AreFlattened", "[analysis]") {
  const auto module =
      ParseKernel("{ .reg .u32 %t; mov.u32 %t, 1;\n{ L: add.u32 %t, %t, 1; @%p1 bra L; } }\nbra L;\nL: ret;");
  const Cfg cfg(*module->FindFunction("k"));
  REQUIRE(cfg.blocks().size() == 4);
  CHECK(Successors(cfg, 1) == std::vector<NodeId>{2, 1});  // the inner L
  CHECK(Successors(cfg, 2) == std::vector<NodeId>{3});     // the outer L
  for (const CfgInstruction& at : cfg.instructions()) {
    CHECK(std::get_if<ptx::Instruction>(&at.scope->statements[at.statement]) == at.instruction);
  }
}

TEST_CASE("Cfg_EndOfBody_Returns", "[analysis]") {
  const auto label_last = ParseKernel("bra L;\nL:");
  const Cfg cfg(*label_last->FindFunction("k"));
  REQUIRE(cfg.blocks().size() == 2);
  CHECK(cfg.blocks()[1].end == BlockEnd::kReturn);
  CHECK(Successors(cfg, 0) == std::vector<NodeId>{1});

  const auto empty = ParseKernel("");
  CHECK(Cfg(*empty->FindFunction("k")).blocks().size() == 1);

  const auto guarded = ParseKernel("L: @%p1 bra L;");
  const Cfg falls_off(*guarded->FindFunction("k"));
  CHECK(falls_off.Leaves(0));
}

TEST_CASE("Cfg_NoReturnCall_EndsTheBlock", "[analysis]") {
  const auto module = ParseItems(".extern .func die() .noreturn;\n.entry k() {\ncall die, ();\nret;\n}\n");
  const Cfg cfg(*module->FindFunction("k"));
  REQUIRE(cfg.blocks().size() == 2);
  CHECK(cfg.blocks()[0].end == BlockEnd::kNoReturnCall);
  CHECK(Successors(cfg, 0).empty());
}

TEST_CASE("Cfg_UnknownLabel_IsReported", "[analysis]") {
  const auto module = ParseKernel("bra NOWHERE;\nret;");
  CHECK(Cfg(*module->FindFunction("k")).unresolved_branch() != nullptr);
}

TEST_CASE("Analyses_Corpus_HoldTogether", "[analysis]") {
  std::size_t functions = 0;
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(file.text, sink);
    const CallGraph calls(*module);
    CHECK(calls.BottomUp().size() == calls.size());
    for (const ptx::Function& function : module->functions) {
      if (!function.body) continue;
      ++functions;
      const Cfg cfg(function);
      const DominatorTree dominators(cfg.graph(), 0);
      const PostDominatorTree post(cfg.graph(), 0, cfg.GuardedLeaves());
      const LoopNest loops(cfg.graph(), 0);
      const Liveness liveness(cfg);
      // Nothing is read before it is written in compiled code, apart from outputs of inline assembly under a guard.
      const bool compiled =
          file.path.find("/hand/") == std::string::npos && file.path.find("inline_asm") == std::string::npos;
      if (compiled) CHECK(liveness.LiveIn(0).empty());
      for (const Loop& loop : loops.loops()) {
        if (loop.irreducible) continue;
        for (const BlockId latch : loop.latches) CHECK(dominators.Dominates(loop.header, latch));
      }
      for (BlockId block = 0; block < cfg.blocks().size(); ++block) {
        if (dominators.Reaches(block)) CHECK(post.parent(block) != kNoNode);
      }
    }
  }
  CHECK(functions > 100);
}

}  // namespace gridloom::analysis
