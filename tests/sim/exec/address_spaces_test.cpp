// isspacep: in which state space a generic address lies, in machine code and interpreted.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

// In the order of the bits that Ask writes.
enum : std::uint32_t {
  kConst = 1,
  kGlobal = 2,
  kLocal = 4,
  kShared = 8,
  kSharedCta = 16,
  kSharedCluster = 32,
  kParam = 64,
  kParamEntry = 128
};

// Every answer about the address in %rd1, to word `index` of what %rd0 points to.
std::string Ask(unsigned index) {
  std::string text = "mov.u32 %r1, 0;\n";
  unsigned bit = 1;
  for (const char* space :
       {"const", "global", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry"}) {
    text += "isspacep." + std::string(space) + " %p1, %rd1;\n@%p1 or.b32 %r1, %r1, " + std::to_string(bit) + ";\n";
    bit *= 2;
  }
  return text + "st.global.u32 [%rd0+" + std::to_string(4 * index) + "], %r1;\n";
}

// One thread of each CTA asks about one address after the other; a called function is given a parameter's.
std::string Kernel() {
  return ".version 8.3\n.target sm_90\n.address_size 64\n"
         ".global .u32 g[4];\n.const .u32 c[3] = {1, 2, 3};\n.global .u32 h[4];\n.const .align 64 .b8 d[5] = {9};\n"
         ".func asked(.param .u64 address, .param .u64 out)\n{\n"
         ".reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd1, [address];\nld.param.u64 %rd0, [out];\n" +
         Ask(0) +
         "ret;\n}\n"
         ".entry k(.param .u64 out, .param .align 8 .b8 block[24])\n{\n"
         ".reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<4>; .shared .b8 s[512]; .local .b8 l[16];\n"
         "ld.param.u64 %rd0, [out];\nmov.u32 %r2, %ctaid.x;\nmad.wide.u32 %rd0, %r2, 128, %rd0;\n"
         "mov.b64 %rd1, c;\ncvta.const.u64 %rd1, %rd1;\n" +
         Ask(0) + "add.u64 %rd1, %rd1, 11;\n" + Ask(1) +
         "mov.b64 %rd1, d;\ncvta.const.u64 %rd1, %rd1;\nadd.u64 %rd1, %rd1, 4;\n" + Ask(2) +
         "mov.b64 %rd1, g;\ncvta.global.u64 %rd1, %rd1;\n" + Ask(3) +
         "mov.b64 %rd1, h;\ncvta.global.u64 %rd1, %rd1;\nadd.u64 %rd1, %rd1, 15;\n" + Ask(4) + "mov.b64 %rd1, %rd0;\n" +
         Ask(5) + "mov.b64 %rd1, l;\ncvta.local.u64 %rd1, %rd1;\n" + Ask(6) +
         "mov.b64 %rd1, s;\ncvta.shared.u64 %rd1, %rd1;\n" + Ask(7) + "add.u64 %rd1, %rd1, 511;\n" + Ask(8) +
         "mov.b64 %rd1, out;\ncvta.param.u64 %rd1, %rd1;\n" + Ask(9) +
         "mov.b64 %rd1, block;\ncvta.param.u64 %rd1, %rd1;\nadd.u64 %rd1, %rd1, 23;\n" + Ask(10) +
         "mov.b64 %rd1, s;\nmov.u32 %r2, %cluster_ctarank;\nxor.b32 %r2, %r2, 1;\nmov.u32 %r3, %cluster_nctarank;\n"
         "setp.eq.u32 %p2, %r3, 1;\n@%p2 bra ALONE;\ncvta.shared.u64 %rd1, %rd1;\nmapa.u64 %rd1, %rd1, %r2;\n" +
         Ask(11) + "ALONE:\nmov.b64 %rd1, 0;\n" + Ask(12) +
         "mov.b64 %rd1, block;\ncvta.param.u64 %rd1, %rd1;\nadd.u64 %rd2, %rd0, 52;\n"
         "{ .param .u64 a; .param .u64 b; st.param.u64 [a], %rd1; st.param.u64 [b], %rd2; call asked, (a, b); }\n"
         "ret;\n}\n";
}

void CheckAll(const std::string& tiers, const std::string& features, bool clusters) {
  INFO("tiers " << tiers << ", processor " << features << (clusters ? ", clusters" : ""));
  Engine::Options options;
  options.tiers = tiers;
  options.cpu_features = features;
  test::Executor executor(options);
  std::vector<std::uint32_t> out(2 * 32, 0xffffffff);
  const std::uint64_t device = executor.Upload(out);
  const test::ParamBlock params =
      test::ParamBlock().Add(device).Add(std::uint64_t{1}).Add(std::uint64_t{2}).Add(std::uint64_t{3});
  LaunchParams launch;
  launch.grid = {2, 1, 1};
  launch.block = {1, 1, 1};
  if (clusters) launch.cluster = {2, 1, 1};
  launch.params = params.bytes();
  const LaunchFault fault = executor.Launch(Kernel(), "k", std::move(launch));
  INFO(fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  executor.Download(device, out);
  const std::uint32_t shared = kShared | kSharedCta | kSharedCluster, param = kGlobal | kParam | kParamEntry;
  const std::uint32_t wanted[] = {kConst,  kConst, kConst, kGlobal, kGlobal, kGlobal,
                                  kLocal,  shared, shared, param,   param,   clusters ? kSharedCluster : 0xffffffff,
                                  kGlobal, param};
  for (unsigned cta = 0; cta < 2; ++cta) {
    for (unsigned i = 0; i < std::size(wanted); ++i) {
      INFO("CTA " << cta << ", address " << i);
      CHECK(out[cta * 32 + i] == wanted[i]);
    }
  }
}

}  // namespace

TEST_CASE("Isspacep_TellsEachAddressItsSpace") {
  for (const std::string tiers : {"off", "interpret"}) {
    for (const bool clusters : {false, true}) CheckAll(tiers, "", clusters);
  }
  CheckAll("off", "avx2", true);
  CheckAll("off", "baseline", true);
}
