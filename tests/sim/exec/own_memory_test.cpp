// Global memory that each running CTA has for itself (.minperctamemory, %perctamemoryoffset, %perctamemorysize;
// PTX 9.4).
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr unsigned kOwnThreads = 64, kOwnCtas = 96;

// Each thread fills its part of the CTA's memory with numbers of the CTA, waits for the others and reads a neighbour's
// part. Words of the result, by CTA: wrong numbers, size, address (two words), rank in the cluster, where the memory
// of the cluster's CTAs lies behind that of the first one.
std::string OwnMemoryKernel(const std::string& cluster) {
  return R"(.version 9.4
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out))" +
         cluster + R"( .minperctamemory 2100
{
  .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u64 %rd2, %perctamemoryoffset;
  mov.u32 %r3, %perctamemorysize;
  mul.wide.u32 %rd3, %r2, 24;
  add.u64 %rd1, %rd1, %rd3;
  mad.lo.u32 %r4, %r2, 1000003, %r1;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd2, %rd3;
  mov.u32 %r5, %r3;
FILL:
  st.global.u32 [%rd4], %r4;
  add.u64 %rd4, %rd4, 256;
  sub.u32 %r5, %r5, 256;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra FILL;
  bar.sync 0;
  xor.b32 %r6, %r1, 33;
  mad.lo.u32 %r4, %r2, 1000003, %r6;
  mul.wide.u32 %rd3, %r6, 4;
  add.u64 %rd4, %rd2, %rd3;
  mov.u32 %r5, %r3;
  mov.u32 %r8, 0;
READ:
  ld.u32 %r7, [%rd4];
  setp.ne.u32 %p2, %r7, %r4;
  @%p2 add.u32 %r8, %r8, 1;
  add.u64 %rd4, %rd4, 256;
  sub.u32 %r5, %r5, 256;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra READ;
  red.global.add.u32 [%rd1], %r8;
  mov.u32 %r9, %cluster_ctarank;
  st.global.u32 [%rd1+4], %r3;
  st.global.u64 [%rd1+8], %rd2;
  st.global.u32 [%rd1+16], %r9;
  ret;
}
)";
}

void CheckOwnMemory(const std::string& tiers, bool memcheck, const std::string& cluster) {
  INFO("tiers " << tiers << ", memcheck " << memcheck << cluster);
  Engine::Options options;
  options.tiers = tiers;
  options.threads = 2;
  options.memcheck = memcheck;
  test::Executor executor(options);
  std::vector<std::uint32_t> out(6 * kOwnCtas);
  const std::uint64_t device = executor.Upload(out);
  LaunchParams launch;
  const test::ParamBlock params = test::ParamBlock().Add(device);
  launch.grid = {kOwnCtas, 1, 1};
  launch.block = {kOwnThreads, 1, 1};
  launch.params = params.bytes();
  if (!cluster.empty()) launch.cluster = {4, 1, 1};
  const LaunchFault fault = executor.Launch(OwnMemoryKernel(cluster), "k", launch);
  INFO(fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  executor.Download(device, out);
  for (unsigned cta = 0; cta < kOwnCtas; ++cta) {
    const std::uint32_t* const own = &out[6 * cta];
    INFO("CTA " << cta);
    CHECK(own[0] == 0);
    CHECK(own[1] == 3072);  // the next multiple of 1024
    const std::uint64_t address = own[2] | std::uint64_t{own[3]} << 32;
    CHECK(address % 1024 == 0);
    CHECK(address != 0);
    CHECK(own[4] == (cluster.empty() ? 0 : cta % 4));
    if (cluster.empty() || cta % 4 == 0) continue;
    const std::uint64_t before = out[6 * cta - 4] | std::uint64_t{out[6 * cta - 3]} << 32;
    CHECK(address == before + 3072);  // CTAs of a cluster run together
  }
}

}  // namespace

TEST_CASE("MemoryOfACta_IsItsOwn") {
  for (const std::string tiers : {"off", "interpret"})
    for (const bool memcheck : {false, true})
      for (const std::string cluster : {"", " .reqnctapercluster 4, 1, 1"}) CheckOwnMemory(tiers, memcheck, cluster);
}
