// clusterlaunchcontrol: clusters that take over the work of clusters that have not begun. Each place of the grid is
// worked on once, whoever does it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/exec/ranges/access_observer.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

// Each CTA begins with its own place. For each place: all its threads add to the place's count (words 2 and on), its
// first thread notes whose place it was (word 0: begun CTAs, word 1: places that were taken over). Then the cluster's
// first CTA asks for another place, for all of them.
std::string Worker(bool to_all) {
  const std::string multicast = to_all ? ".multicast::cluster::all" : "";
  return R"(.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .shared .align 16 .b8 answer[16];
  .shared .align 8 .b64 barrier;
  .reg .b32 %r<40>; .reg .b64 %rd<10>; .reg .pred %p<8>; .reg .b128 %q;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r2, %cluster_ctarank;
  setp.ne.u32 %p2, %r2, 0;
  mov.u32 %r3, answer;
  mov.u32 %r4, barrier;
  mov.u32 %r5, %ctaid.x;
  mov.u32 %r6, %ctaid.y;
  mov.u32 %r7, %ctaid.z;
  mov.u32 %r8, %nctaid.x;
  mov.u32 %r9, %nctaid.y;
  mov.u32 %r10, %cluster_ctaid.x;
  mov.u32 %r11, 0;
  mov.u32 %r12, 0;
  @!%p1 mbarrier.init.shared.b64 [%r4], 1;
  @!%p1 red.global.add.u32 [%rd1], 1;
  barrier.cluster.arrive;
  barrier.cluster.wait;
WORK:
  mad.lo.u32 %r20, %r7, %r9, %r6;
  mad.lo.u32 %r20, %r20, %r8, %r5;
  mul.wide.u32 %rd2, %r20, 4;
  add.u64 %rd2, %rd1, %rd2;
  red.global.add.u32 [%rd2+8], 1;
  @!%p1 red.global.add.u32 [%rd1+4], %r12;
  @!%p1 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r4], 16;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  @%p1 bra WAIT;
  @%p2 bra WAIT;
  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes)" +
         multicast + R"(.b128 [%r3], [%r4];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r4], %r11;
  @!%p3 bra WAIT;
  xor.b32 %r11, %r11, 1;
  ld.shared.v2.b64 {%rd5, %rd6}, [answer];
  mov.b128 %q, {%rd5, %rd6};
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q;
  @!%p4 bra DONE;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r21, %q;
  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r5, %r6, %r7, %r22}, %q;
  setp.eq.u32 %p5, %r5, %r21;
  @!%p5 trap;
  add.u32 %r5, %r5, %r10;
  mov.u32 %r12, 1;
  bra WORK;
DONE:
  ret;
}
)";
}

constexpr std::uint32_t kBlock = 64;
constexpr Dim3 kGrid{8, 6, 3};

struct Counts {
  std::uint32_t begun, taken;
  bool each_once;
};

Counts RunGrid(const Engine::Options& options, Dim3 cluster, LaunchParams launch = {}) {
  test::Executor executor(options);
  std::vector<std::uint32_t> out(2 + kGrid.count(), 0);
  const std::uint64_t device = executor.Upload(out);
  const test::ParamBlock params = test::ParamBlock().Add(device);
  launch.grid = kGrid;
  launch.block = {kBlock, 1, 1};
  launch.cluster = cluster;
  launch.params = params.bytes();
  const LaunchFault fault = executor.Launch(Worker(cluster.count() > 1), "k", launch);
  INFO(fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  executor.Download(device, out);
  return {out[0], out[1], std::all_of(out.begin() + 2, out.end(), [](std::uint32_t n) { return n == kBlock; })};
}

}  // namespace

TEST_CASE("TryCancel_GivesEachPlaceToOneCluster") {
  for (const std::string tiers : {"off", "on", "interpret"}) {
    for (const unsigned threads : {1u, 4u}) {
      for (const Dim3 cluster : {Dim3{1, 1, 1}, Dim3{4, 1, 1}}) {
        INFO("tiers " << tiers << ", threads " << threads << ", clusters of " << cluster.count());
        Engine::Options options;
        options.tiers = tiers;
        options.threads = threads;
        const Counts counts = RunGrid(options, cluster);
        CHECK(counts.each_once);
        CHECK(counts.begun + counts.taken == kGrid.count());
        CHECK(counts.taken != 0);
      }
    }
  }
}

// Of a grid of which some CTAs run only, no other is given away.
TEST_CASE("TryCancel_GivesNoPlaceThatDoesNotRun") {
  std::vector<std::uint64_t> some;
  for (std::uint64_t i = 1; i < kGrid.count(); i += 3) some.push_back(i);
  test::Executor executor;
  std::vector<std::uint32_t> out(2 + kGrid.count(), 0);
  const std::uint64_t device = executor.Upload(out);
  const test::ParamBlock params = test::ParamBlock().Add(device);
  LaunchParams launch;
  launch.grid = kGrid;
  launch.block = {kBlock, 1, 1};
  launch.cluster = {1, 1, 1};
  launch.params = params.bytes();
  launch.ctas = some;
  REQUIRE(executor.Launch(Worker(false), "k", launch).kind == FaultKind::kNone);
  executor.Download(device, out);
  for (std::uint64_t i = 0; i < kGrid.count(); ++i) CHECK(out[2 + i] == (i % 3 == 1 ? kBlock : 0));
  CHECK(out[0] + out[1] == some.size());
}

// What each CTA does is told: each does its own part.
TEST_CASE("TryCancel_WhereCtasAreWatched_FindsNone") {
  struct Nobody final : AccessObserver {
    void OnAccess(const ObservedAccess&) override {}
  } nobody;
  LaunchParams launch;
  launch.observer = &nobody;
  const Counts counts = RunGrid({}, {1, 1, 1}, launch);
  CHECK(counts.each_once);
  CHECK(counts.begun == kGrid.count());
  CHECK(counts.taken == 0);
}
