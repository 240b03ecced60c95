#include "rewriter/analysis/uniformity.h"

#include <catch2/catch.hpp>
#include <tuple>

#include "tests/rewriter/analysis/parse.h"

namespace gridloom::analysis {
namespace {

using testing::ParseKernel;

/// The blocks of a kernel that not all threads need execute.
std::vector<BlockId> DivergentBlocks(const std::string& body, Scope scope = Scope::kCta) {
  const auto module = ParseKernel(body);
  const Cfg cfg(*module->FindFunction("k"));
  const Uniformity uniformity(cfg, scope);
  std::vector<BlockId> divergent;
  for (BlockId block = 0; block < cfg.blocks().size(); ++block) {
    if (!uniformity.IsUniform(block)) divergent.push_back(block);
  }
  return divergent;
}

using Blocks = std::vector<BlockId>;

/// Whether a branch on %p1, which the text computes, keeps the lanes of each warp together.
bool IsOfWarps(const std::string& condition) {
  const Blocks blocks = DivergentBlocks(condition + "\n@%p1 bra L;\nbar.sync 0;\nL: ret;", Scope::kWarp);
  CHECK((blocks == Blocks{} || blocks == Blocks{1}));
  CHECK(DivergentBlocks(condition + "\n@%p1 bra L;\nbar.sync 0;\nL: ret;") ==
        Blocks{1});  // not of all threads, in any case
  return blocks.empty();
}
constexpr const char* kThread = "mov.u32 %r1, %tid.x;\n";
/// The index of a thread in a block of two dimensions.
constexpr const char* kIndex =
    "mov.u32 %r2, %tid.x;\nmov.u32 %r3, %tid.y;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r1, %r3, %r4, %r2;\n";

}  // namespace

TEST_CASE("Uniformity_BranchOnCta_IsUniform", "[analysis]") {
  CHECK(DivergentBlocks("mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL: ret;") ==
        Blocks{});
}

TEST_CASE("Uniformity_BranchOnThread_MakesItsBlocksDivergent", "[analysis]") {
  CHECK(DivergentBlocks("mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL: ret;") ==
        Blocks{1});
}

TEST_CASE("Uniformity_EarlyExit_MakesAllThatFollowsDivergent", "[analysis]") {
  CHECK(DivergentBlocks("mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 exit;\nbar.sync 0;\nbra L;\nL: ret;") ==
        Blocks{1, 2});
}

TEST_CASE("Uniformity_LoopCounter_IsUniform", "[analysis]") {
  CHECK(DivergentBlocks(
            "mov.u32 %r1, 0;\nL: bar.sync 0;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\nret;") ==
        Blocks{});
}

TEST_CASE("Uniformity_ValueSetUnderDivergentBranch_IsDivergent", "[analysis]") {
  const std::string body =
      "mov.u32 %r1, %tid.x;\nmov.u32 %r2, 0;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nmov.u32 %r2, 1;\nL: setp.eq.u32 "
      "%p2, %r2, 0;\n"
      "@%p2 bra M;\nbar.sync 0;\nM: ret;";
  CHECK(DivergentBlocks(body) == Blocks{1, 3});
}

TEST_CASE("Uniformity_LoopLeftByThreads_CountsDivergently", "[analysis]") {
  // Each thread goes round as often as its index says; what it counted is not the same afterwards.
  const std::string body =
      "mov.u32 %r1, %tid.x;\nmov.u32 %r2, 0;\nL: add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra "
      "L;\nsetp.eq.u32 %p2, %r2, 5;\n"
      "@%p2 bra M;\nbar.sync 0;\nM: ret;";
  CHECK(DivergentBlocks(body) == Blocks{1, 3});
}

TEST_CASE("Uniformity_Loads_OnlyOfParametersAndConstants", "[analysis]") {
  CHECK(
      DivergentBlocks(
          "ld.const.u32 %r1, [%rd1];\nmov.u64 %rd1, 0;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL: ret;") ==
      Blocks{});
  CHECK(DivergentBlocks("ld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL: ret;") ==
        Blocks{1});
}

TEST_CASE("Uniformity_OfWarps_TheWarpsNumber", "[analysis]") {
  for (const std::string index : {kThread, kIndex}) {
    CHECK(IsOfWarps(index + "shr.u32 %r5, %r1, 5;\nsetp.eq.u32 %p1, %r5, 0;"));
    CHECK(IsOfWarps(index + "shr.u32 %r5, %r1, 6;\nsetp.eq.u32 %p1, %r5, 1;"));
    CHECK(IsOfWarps(index + "div.u32 %r5, %r1, 96;\nsetp.eq.u32 %p1, %r5, 0;"));
    CHECK(IsOfWarps(index + "and.b32 %r5, %r1, -32;\nsetp.eq.u32 %p1, %r5, 64;"));
    CHECK(IsOfWarps(index + "and.b32 %r5, %r1, 63;\nsetp.lt.u32 %p1, %r5, 32;"));
    CHECK(IsOfWarps(index + "bfe.u32 %r5, %r1, 5, 2;\nsetp.eq.u32 %p1, %r5, 3;"));
    CHECK(IsOfWarps(
        index +
        "mov.u32 %r6, %ctaid.x;\nmad.lo.u32 %r7, %r6, %ntid.x, %r1;\nshr.u32 %r5, %r7, 5;\nsetp.ne.u32 %p1, %r5, 9;"));
    CHECK(IsOfWarps(index + "cvt.u64.u32 %rd1, %r1;\nshr.u64 %rd2, %rd1, 5;\nsetp.eq.u64 %p1, %rd2, 0;"));
    CHECK_FALSE(IsOfWarps(index + "shr.u32 %r5, %r1, 4;\nsetp.eq.u32 %p1, %r5, 0;"));
    CHECK_FALSE(IsOfWarps(index + "div.u32 %r5, %r1, 48;\nsetp.eq.u32 %p1, %r5, 0;"));
    CHECK_FALSE(IsOfWarps(index + "div.s32 %r5, %r1, 32;\nsetp.eq.u32 %p1, %r5, 0;"));  // -1 and -32 are not alike
    CHECK_FALSE(IsOfWarps(index + "add.u32 %r6, %r1, 1;\nshr.u32 %r5, %r6, 5;\nsetp.eq.u32 %p1, %r5, 0;"));
    CHECK_FALSE(IsOfWarps(index + "and.b32 %r5, %r1, 31;\nsetp.eq.u32 %p1, %r5, 0;"));
    CHECK_FALSE(IsOfWarps(
        index +
        "mov.b64 %rd1, {%r1, %r1};\nmov.b64 {%r6, %r7}, %rd1;\nshr.u32 %r5, %r6, 5;\nsetp.eq.u32 %p1, %r5, 0;"));
  }
}

TEST_CASE("Uniformity_OfWarps_Comparisons", "[analysis]") {
  // The bound is between two warps, or it is not.
  for (const auto& [compare, bound, turned, expected] :
       std::vector<std::tuple<std::string, int, bool, bool>>{{"lt", 32, false, true},
                                                             {"ge", 64, false, true},
                                                             {"gt", 31, false, true},
                                                             {"le", 63, false, true},
                                                             {"lo", 32, false, true},
                                                             {"hi", 31, false, true},
                                                             {"lt", 31, false, false},
                                                             {"lt", 33, false, false},
                                                             {"gt", 32, false, false},
                                                             {"le", 32, false, false},
                                                             {"eq", 32, false, false},
                                                             {"ne", 0, false, false},
                                                             {"gt", 32, true, true},
                                                             {"le", 32, true, true},
                                                             {"lt", 31, true, true},
                                                             {"ge", 31, true, true},
                                                             {"gt", 31, true, false},
                                                             {"lt", 32, true, false}}) {
    const std::string number = std::to_string(bound);
    CAPTURE(compare, bound, turned);
    CHECK(IsOfWarps(kThread + ("setp." + compare + ".u32 %p1, ") +
                    (turned ? number + ", %r1;" : "%r1, " + number + ";")) == expected);
  }
  // The half of a block is no whole number of warps; a block is.
  CHECK_FALSE(
      IsOfWarps(std::string(kThread) + "mov.u32 %r5, %ntid.x;\nshr.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r1, %r5;"));
  CHECK(IsOfWarps(std::string(kIndex) + "mov.u32 %r5, %ntid.x;\nsetp.lt.u32 %p1, %r1, %r5;"));
}

TEST_CASE("Uniformity_OfWarps_Loops", "[analysis]") {
  // Each warp goes round as often as its number says; each thread as often as its own.
  const auto loop = [](const std::string& rounds) {
    return DivergentBlocks(
        kThread + rounds + "mov.u32 %r2, 0;\nL: add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r3;\n@%p1 bra L;\nret;",
        Scope::kWarp);
  };
  CHECK(loop("shr.u32 %r3, %r1, 5;\n") == Blocks{});
  CHECK(loop("mov.u32 %r3, %r1;\n") == Blocks{1});
  // A thread's index that goes on by the block's size stays one.
  CHECK(DivergentBlocks(
            kThread +
                std::string(
                    "mov.u32 %r2, %ntid.x;\nL: add.u32 %r1, %r1, %r2;\nsetp.lt.u32 %p1, %r1, 1024;\n@%p1 bra L;\nret;"),
            Scope::kWarp) == Blocks{});
}

TEST_CASE("Uniformity_OfWarps_WhatLanesTellEachOther", "[analysis]") {
  const std::string differs =
      "ld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p2, %r1, 0;\nmov.u32 %r9, -1;\nmov.u32 %r8, 31;\n";
  CHECK(IsOfWarps(differs + "vote.sync.any.pred %p1, %p2, 0xFFFFFFFF;"));
  CHECK(IsOfWarps(differs + "vote.sync.all.pred %p1, %p2, %r9;"));
  CHECK(IsOfWarps(differs + "vote.sync.ballot.b32 %r2, %p2, %r9;\nsetp.eq.u32 %p1, %r2, 0;"));
  CHECK(IsOfWarps(differs + "redux.sync.add.u32 %r2, %r1, %r9;\nsetp.eq.u32 %p1, %r2, 0;"));
  CHECK(IsOfWarps(differs + "shfl.sync.idx.b32 %r2, %r1, 0, %r8, %r9;\nsetp.eq.u32 %p1, %r2, 0;"));
  CHECK_FALSE(IsOfWarps(differs +
                        "shfl.sync.idx.b32 %r2, %r1, %r1, 31, -1;\nsetp.eq.u32 %p1, %r2, 0;"));  // of another lane each
  CHECK_FALSE(
      IsOfWarps(differs + "shfl.sync.idx.b32 %r2, %r1, 0, 7199, -1;\nsetp.eq.u32 %p1, %r2, 0;"));  // of four lanes each
  CHECK_FALSE(IsOfWarps(differs + "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nsetp.eq.u32 %p1, %r2, 0;"));
  CHECK_FALSE(IsOfWarps(differs + "vote.sync.any.pred %p1, %p2, 0xFFFF;"));
  CHECK_FALSE(
      IsOfWarps(differs + "@%p2 mov.u32 %r9, 1;\nvote.sync.any.pred %p1, %p2, %r9;"));  // not all lanes have that mask
  CHECK_FALSE(IsOfWarps(differs + "mov.pred %p1, 0;\n@%p2 vote.sync.any.pred %p1, %p2, 0xFFFFFFFF;"));
}

}  // namespace gridloom::analysis
