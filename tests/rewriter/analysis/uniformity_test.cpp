#include "rewriter/analysis/uniformity.h"

#include <catch2/catch.hpp>

#include "tests/rewriter/analysis/parse.h"

namespace gridloom::analysis {
namespace {

using testing::ParseKernel;

/// The blocks of a kernel that not all threads need execute.
std::vector<BlockId> DivergentBlocks(const std::string& body) {
  const auto module = ParseKernel(body);
  const Cfg cfg(*module->FindFunction("k"));
  const Uniformity uniformity(cfg);
  std::vector<BlockId> divergent;
  for (BlockId block = 0; block < cfg.blocks().size(); ++block) {
    if (!uniformity.IsUniform(block)) divergent.push_back(block);
  }
  return divergent;
}

using Blocks = std::vector<BlockId>;

}  // namespace

TEST_CASE("Uniformity_BranchOnCta_IsUniform", "[analysis]") {
  CHECK(DivergentBlocks("mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL: ret;") == Blocks{});
}

TEST_CASE("Uniformity_BranchOnThread_MakesItsBlocksDivergent", "[analysis]") {
  CHECK(DivergentBlocks("mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL: ret;") == Blocks{1});
}

TEST_CASE("Uniformity_EarlyExit_MakesAllThatFollowsDivergent", "[analysis]") {
  CHECK(DivergentBlocks("mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 exit;\nbar.sync 0;\nbra L;\nL: ret;") == Blocks{1, 2});
}

TEST_CASE("Uniformity_LoopCounter_IsUniform", "[analysis]") {
  CHECK(DivergentBlocks("mov.u32 %r1, 0;\nL: bar.sync 0;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\nret;") == Blocks{});
}

TEST_CASE("Uniformity_ValueSetUnderDivergentBranch_IsDivergent", "[analysis]") {
  const std::string body =
      "mov.u32 %r1, %tid.x;\nmov.u32 %r2, 0;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nmov.u32 %r2, 1;\nL: setp.eq.u32 %p2, %r2, 0;\n"
      "@%p2 bra M;\nbar.sync 0;\nM: ret;";
  CHECK(DivergentBlocks(body) == Blocks{1, 3});
}

TEST_CASE("Uniformity_LoopLeftByThreads_CountsDivergently", "[analysis]") {
  // Each thread goes round as often as its index says; what it counted is not the same afterwards.
  const std::string body =
      "mov.u32 %r1, %tid.x;\nmov.u32 %r2, 0;\nL: add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra L;\nsetp.eq.u32 %p2, %r2, 5;\n"
      "@%p2 bra M;\nbar.sync 0;\nM: ret;";
  CHECK(DivergentBlocks(body) == Blocks{1, 3});
}

TEST_CASE("Uniformity_Loads_OnlyOfParametersAndConstants", "[analysis]") {
  CHECK(DivergentBlocks("ld.const.u32 %r1, [%rd1];\nmov.u64 %rd1, 0;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL: ret;") ==
        Blocks{});
  CHECK(DivergentBlocks("ld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL: ret;") == Blocks{1});
}

}  // namespace gridloom::analysis
