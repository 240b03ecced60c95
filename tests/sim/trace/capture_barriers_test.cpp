// Barriers in traces: lanes that come apart, numbers and counts that stand in registers.
#include <catch2/catch.hpp>

#include "tests/sim/trace/captured.h"

namespace gridloom {
namespace {

using test::Captured;
using test::Run;

constexpr std::uint32_t kEven = 0x55555555, kOdd = 0xaaaaaaaa;

Captured RunKernel(const std::string& body) {
  test::Executor executor;
  const std::uint64_t out = executor.Upload(std::vector<std::uint32_t>(1024, 0));
  test::ParamBlock block;
  block.Add(out);
  exec::LaunchParams launch;
  launch.grid = {1, 1, 1};
  launch.block = {64, 1, 1};
  launch.params = block.bytes();
  return Run(executor, R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<10>; .reg .b64 %rd<6>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
)" + body + "}\n",
             "k", launch);
}

TEST_CASE("Capture_BarrierThatLanesReachApart_WhatFollowsIsDoneByAll") {
  const Captured captured = RunKernel(R"(
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bra ODD;
  st.global.u32 [%rd3], %r1;
  barrier.sync 0;
  bra MEET;
ODD:
  ld.global.u32 %r3, [%rd3+512];
  st.global.u32 [%rd3+1024], %r3;
  barrier.sync 0;
MEET:
  st.global.u32 [%rd3+2048], %r1;
  ret;
)");
  CHECK(captured.dropped == 0);
  REQUIRE(!captured.ctas.empty());
  const trace::KernelCode& code = captured.table.code;
  const trace::CtaTrace& cta = captured.ctas.at(0);
  for (const trace::WarpTrace& warp : cta.warps) {
    // The store behind the barrier, by all lanes at once; before it, each half has come to the barrier.
    CHECK(warp.access_count == 4);
    const trace::MemoryAccess& last = cta.accesses[warp.first_access + warp.access_count - 1];
    CHECK(last.mask == 0xffffffff);
    const trace::BlockVisit& behind = cta.visits[warp.first_visit + warp.visit_count - 1];
    CHECK(behind.mask == 0xffffffff);
    std::uint32_t arrived = 0;
    for (std::uint32_t v = 0; v < warp.visit_count; ++v) {
      const trace::BlockVisit& visit = cta.visits[warp.first_visit + v];
      const trace::BasicBlock& block = code.blocks[visit.block];
      if (code.instructions[block.first + block.count - 1].op != trace::OpClass::kBarrier) continue;
      CHECK((visit.mask == kEven || visit.mask == kOdd));
      CHECK((arrived & visit.mask) == 0);
      arrived |= visit.mask;
    }
    CHECK(arrived == 0xffffffff);
  }
}

TEST_CASE("Capture_BarrierNumbersInRegisters_AreKnownIfTheyAreConstants") {
  const Captured captured = RunKernel(R"(
  mov.u32 %r2, 3;
  mov.u32 %r3, 64;
  mov.u32 %r4, %r3;
  bar.sync %r2, %r4;
  mov.u32 %r5, 1;
  add.u32 %r5, %r5, 1;
  bar.sync %r5;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
)");
  std::vector<trace::Instruction> barriers;
  for (const trace::Instruction& instruction : captured.table.code.instructions) {
    if (instruction.op == trace::OpClass::kBarrier) barriers.push_back(instruction);
  }
  REQUIRE(barriers.size() == 3);
  CHECK((barriers[0].barrier == 3 && barriers[0].barrier_warps == 2));
  CHECK((barriers[1].barrier == 0 && barriers[1].barrier_warps == 0));  // written twice
  CHECK((barriers[2].flags & trace::kArrive) == 0);
}

}  // namespace
}  // namespace gridloom
