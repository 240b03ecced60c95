// Barriers, .sync instructions, mbarriers and asynchronous copies that are used wrongly, and ones that only look so.
#include <catch2/catch.hpp>

#include "tests/sim/exec/memcheck_fixture.h"

namespace gridloom::test {
namespace {

const std::string kTile = ".shared .align 16 .b8 tile[8192];\n.shared .align 8 .b64 bar;\n";
constexpr exec::Dim3 kTwoWarps{64, 1, 1}, kWarp{32, 1, 1};

// %r4: the thread's own word in tile; %r5: that of the next thread.
const std::string kAddresses =
    "mov.u32 %r7, tile;\nadd.u32 %r4, %r7, %r2;\nadd.u32 %r5, %r4, 4;\nadd.u64 %rd4, %rd1, %rd3;\n";
const std::string kStore = "st.global.u32 [%rd4], %r10;\n";

std::string Found(const std::string& body, exec::Dim3 block, const std::string& target = "sm_80") {
  MemcheckRun run;
  const std::uint64_t memory = run.executor().Upload(std::vector<std::uint32_t>(4096));
  run.Run(KernelText(kAddresses + body, kTile, target), {1, 1, 1}, block, memory, memory);
  return Kinds(run.told());
}

/// `then` for threads of which `test` holds ("lt.u32 %p1, %r3, 16"), and `otherwise` for the others.
std::string If(const std::string& test, const std::string& then, const std::string& otherwise = "") {
  return "setp." + test + ";\n@!%p1 bra ELSE;\n" + then + "bra.uni END;\nELSE:\n" + otherwise + "END:\n";
}

const std::string kHalfWarp = "lt.u32 %p1, %r3, 16", kFirstWarp = "lt.u32 %p1, %r1, 32";

TEST_CASE("memcheck: a barrier that part of a warp comes to") {
  CHECK(Found(If(kHalfWarp, "bar.sync 0;\n") + kStore, kWarp) == "barrier-divergence");
  CHECK(Found(If(kHalfWarp, "barrier.sync.aligned 0;\n") + kStore, kWarp) == "barrier-divergence");
  CHECK(Found(If(kHalfWarp, "barrier.sync 0;\n") + kStore, kWarp) == "barrier-divergence");
  CHECK(Found(If(kHalfWarp, "barrier.sync 0;\n", "barrier.sync 0;\n") + kStore, kWarp) == "");
  CHECK(Found(If(kHalfWarp, "barrier.red.or.pred %p2, 0, %p1;\n") + kStore, kWarp) == "barrier-divergence");
  CHECK(Found(If(kHalfWarp, "st.global.u32 [%rd1], 1;\nbarrier.sync 0;\n", "barrier.sync 0;\n") + kStore, kWarp) == "");
  CHECK(Found(If(kHalfWarp, "bar.sync 0;\nst.global.u32 [%rd1], 1;\n", "bar.sync 0;\nst.global.u32 [%rd1+4], 1;\n"),
              kWarp) == "barrier-divergence");
  CHECK(Found(If(kHalfWarp, "bar.red.popc.u32 %r10, 0, %p1;\n") + kStore, kWarp) == "barrier-divergence");
  // As many turns as the lane has a number.
  CHECK(Found("mov.u32 %r10, 0;\nLOOP:\nsetp.ge.u32 %p1, %r10, %r3;\n@%p1 bra OUT;\nadd.u32 %r10, %r10, 1;\nbar.sync "
              "0;\nbra.uni "
              "LOOP;\nOUT:\n" +
                  kStore,
              kWarp) == "barrier-divergence");
}

TEST_CASE("memcheck: a barrier that warps pass by") {
  CHECK(Found(If(kFirstWarp, "bar.sync 0;\n") + kStore, kTwoWarps) == "barrier-divergence");
  CHECK(Found(If(kFirstWarp, "barrier.sync 0;\n") + kStore, kTwoWarps) == "barrier-divergence");
  CHECK(Found(If(kFirstWarp, "bar.sync 1, 32;\n") + kStore, kTwoWarps) == "");
  CHECK(Found(If(kFirstWarp, "barrier.sync 1, 32;\n") + kStore, kTwoWarps) == "");
  CHECK(Found(If(kFirstWarp, "bar.sync 0;\nst.global.u32 [%rd1], 1;\n", "bar.sync 0;\nst.global.u32 [%rd1+4], 1;\n") +
                  kStore,
              kTwoWarps) == "");
  CHECK(Found("bar.sync 0;\n" + kStore, kTwoWarps) == "");
}

TEST_CASE("memcheck: threads that end need not come to a barrier") {
  CHECK(Found("setp." + kHalfWarp + ";\n@%p1 exit;\nbar.sync 0;\n" + kStore, kTwoWarps) == "");
  CHECK(Found("setp." + kHalfWarp + ";\n@%p1 bra OUT;\nbar.sync 0;\n" + kStore + "OUT:\n", kTwoWarps) == "");
  CHECK(Found(If(kHalfWarp, kStore + "ret;\n") + "bar.sync 0;\n" + kStore, kTwoWarps) == "");
  CHECK(Found(If(kFirstWarp, kStore + "ret;\n") + "bar.sync 0;\n" + kStore + "bar.sync 0;\n", kTwoWarps) == "");
}

TEST_CASE("memcheck: masks of .sync instructions") {
  const std::string some = "add.u32 %r10, %r10, 1;\n" + kStore;
  CHECK(Found(If(kHalfWarp, "bar.warp.sync 0xff;\n") + kStore, kWarp) == "sync-mask");
  CHECK(Found("bar.warp.sync 0xff;\n" + kStore, kWarp) == "sync-mask");
  CHECK(Found(If(kHalfWarp, "bar.warp.sync -1;\n") + kStore, kWarp) == "sync-missing");
  CHECK(Found(If(kHalfWarp, "bar.warp.sync 0xffff;\n") + kStore, kWarp) == "");
  CHECK(Found(If(kHalfWarp, some + "bar.warp.sync -1;\n", "bar.warp.sync -1;\n" + some) + kStore, kWarp) == "");
  CHECK(Found(If(kHalfWarp, "bar.warp.sync -1;\n") + kStore + "@!%p1 bar.warp.sync -1;\n", kWarp) == "");
  CHECK(Found(If(kHalfWarp, "bar.warp.sync -1;\n", "bar.sync 0;\n") + kStore, kWarp) ==
        "sync-missing barrier-divergence");
  CHECK(Found(If(kHalfWarp, "vote.sync.ballot.b32 %r10, %p1, -1;\n") + kStore, kWarp) == "sync-missing");
  CHECK(Found(If(kHalfWarp, "match.any.sync.b32 %r10, %r1, -1;\n") + kStore, kWarp) == "sync-missing");
  CHECK(Found(If(kHalfWarp, "redux.sync.add.u32 %r10, %r1, -1;\n") + kStore, kWarp) == "sync-missing");
  CHECK(Found(If(kHalfWarp, "activemask.b32 %r11;\nvote.sync.ballot.b32 %r10, %p1, %r11;\n") + kStore, kWarp) == "");
  // Lanes that have ended, and that are not there.
  CHECK(Found("setp." + kHalfWarp + ";\n@%p1 exit;\nbar.warp.sync -1;\nvote.sync.ballot.b32 %r10, %p1, -1;\n" + kStore,
              kWarp) == "");
  CHECK(Found("bar.warp.sync -1;\n" + kStore, {40, 1, 1}) == "");
}

TEST_CASE("memcheck: lanes that meet in .sync instructions of two kinds") {
  const std::string warp = "bar.warp.sync -1;\n", sum = "redux.sync.add.u32 %r10, %r1, -1;\n",
                    vote = "vote.sync.ballot.b32 %r10, %p1, -1;\n", any = "vote.sync.any.pred %p2, %p1, -1;\n",
                    down = "shfl.sync.down.b32 %r10, %r1, 1, 31, -1;\n",
                    flip = "shfl.sync.bfly.b32 %r10, %r1, 1, 31, -1;\n", match = "match.any.sync.b32 %r10, %r1, -1;\n",
                    wide = "match.any.sync.b64 %r10, %rd3, -1;\n";
  const auto found = [&](const std::string& one, const std::string& other) {
    return Found(If(kHalfWarp, one + "st.global.u32 [%rd1], 1;\n", other) + "st.global.u32 [%rd4+128], 1;\n", kWarp);
  };
  for (const auto& [one, other] :
       {std::pair(warp, sum), {sum, warp}, {warp, vote}, {vote, any}, {down, flip}, {match, wide}, {vote, match}})
    CHECK(found(one, other) == "sync-missing");
  for (const std::string& same : {warp, sum, vote, any, down, flip, match, wide}) CHECK(found(same, same) == "");
}

TEST_CASE("memcheck: a value of a lane that takes no part in a shuffle") {
  const std::string down = "shfl.sync.down.b32 %r10, %r1, 16, 31, -1;\n";
  CHECK(Found(down + kStore, kWarp) == "");
  CHECK(Found(down + kStore, {40, 1, 1}) == "shuffle-source");
  CHECK(Found(down + "setp.lt.u32 %p1, %r1, 16;\n@!%p1 mov.u32 %r10, 0;\n" + kStore, {40, 1, 1}) ==
        "");  // nobody uses it
  CHECK(Found("setp.ge.u32 %p1, %r3, 20;\n@%p1 exit;\n" + down + kStore, kWarp) == "shuffle-source");
  CHECK(Found(If(kHalfWarp, "shfl.sync.idx.b32 %r10, %r1, 20, 31, 0xffff;\n") + kStore, kWarp) == "shuffle-source");
  CHECK(Found(If(kHalfWarp, "shfl.sync.idx.b32 %r10, %r1, 2, 31, 0xffff;\n") + kStore, kWarp) == "");
  // Both halves are at the same instruction, each with a mask of its own.
  CHECK(Found("setp." + kHalfWarp +
                  ";\nselp.b32 %r11, 0xffff, 0xffff0000, %p1;\nshfl.sync.bfly.b32 %r10, %r1, 16, 31, %r11;\n" + kStore,
              kWarp) == "shuffle-source");
  // They meet in instructions at two places.
  const std::string half = "shfl.sync.bfly.b32 %r10, %r1, 16, 31, -1;\nadd.u32 %r10, %r10, ";
  CHECK(Found(If(kHalfWarp, half + "1;\n", half + "2;\n") + kStore, kWarp) == "");
}

const std::string kInit =
    "mov.u32 %r8, bar;\nsetp.ne.u32 %p2, %r1, 0;\n@!%p2 mbarrier.init.shared.b64 [%r8], 64;\nbar.sync 0;\n";

TEST_CASE("memcheck: mbarriers") {
  const std::string one = "mov.u32 %r8, bar;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 exit;\n";
  const std::string init = "mbarrier.init.shared.b64 [%r8], 2;\n", inval = "mbarrier.inval.shared.b64 [%r8];\n",
                    arrive = "mbarrier.arrive.shared.b64 %rd6, [%r8];\n";
  CHECK(Found(one + init + arrive + arrive + inval + init + arrive, kWarp) == "");
  CHECK(Found(one + "mbarrier.test_wait.parity.shared.b64 %p1, [%r8], 0;\n", kWarp, "sm_90") == "mbarrier");
  CHECK(Found(one + init + init, kWarp) == "mbarrier");
  CHECK(Found(one + init + "st.shared.u64 [%r8], 0;\n" + init, kWarp) == "");  // no object any more
  CHECK(Found(one + "mbarrier.init.shared.b64 [%r8], 0;\n", kWarp) == "mbarrier");
  CHECK(Found(one + init + "st.volatile.shared.u64 [%r8], 70;\n" + arrive, kWarp) == "mbarrier");
}

TEST_CASE("memcheck: asynchronous copies that were not waited for") {
  const std::string copy = "cp.async.ca.shared.global [%r4], [%rd4], 4;\n", commit = "cp.async.commit_group;\n",
                    read = "ld.shared.u32 %r10, [%r4];\n" + kStore, other = "ld.shared.u32 %r10, [%r5];\n" + kStore;
  CHECK(Found(copy + commit + read, kWarp) == "unfinished-copy");
  CHECK(Found(copy + commit + "cp.async.wait_group 1;\n" + read, kWarp) == "unfinished-copy");
  CHECK(Found(copy + "cp.async.wait_group 0;\n" + read, kWarp) == "unfinished-copy");  // not committed
  CHECK(Found(copy + commit + "cp.async.wait_group 0;\n" + read, kWarp) == "");
  CHECK(Found(copy + "cp.async.wait_all;\n" + read, kWarp) == "");
  CHECK(Found(copy + "st.shared.u32 [%r4], 1;\ncp.async.wait_all;\n", kWarp) == "unfinished-copy");
  CHECK(Found("ld.shared.u32 %r10, [%r4+1024];\n" + copy + "st.shared.u32 [%r4+512], 1;\ncp.async.wait_all;\n",
              kWarp) == "");
  const std::string in_range = "setp.lt.u32 %p1, %r1, 63;\n@%p1 ";
  CHECK(Found(copy + "cp.async.wait_all;\n" + in_range + other, kTwoWarps).starts_with("race"));
  CHECK(Found(copy + "cp.async.wait_all;\nbar.sync 0;\n" + in_range + other, kTwoWarps) == "");
  CHECK(Found(copy + "bar.sync 0;\ncp.async.wait_all;\n" + in_range + other, kTwoWarps) == "race");
  // An mbarrier tells of it.
  const std::string arrive = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r8];\n";
  const std::string wait = "WAIT:\nmbarrier.test_wait.parity.shared.b64 %p1, [%r8], 0;\n@!%p1 bra WAIT;\n";
  CHECK(Found(kInit + copy + arrive + wait + read, kTwoWarps, "sm_90") == "");
  CHECK(Found(kInit + copy + arrive + read + wait, kTwoWarps, "sm_90") == "unfinished-copy");
}

TEST_CASE("memcheck: a barrier of some threads does not order those that have ended") {
  const std::string leave = "setp.lt.u32 %p1, %r1, 32;\n@%p1 st.shared.u32 [%r4], 1;\n@%p1 exit;\n";
  CHECK(Found(leave + "bar.sync 1, 32;\nld.shared.u32 %r10, [%r4+-128];\n" + kStore, kTwoWarps) == "race");
  CHECK(Found(leave + "bar.sync 0;\nld.shared.u32 %r10, [%r4+-128];\n" + kStore, kTwoWarps) == "");
}

}  // namespace
}  // namespace gridloom::test
