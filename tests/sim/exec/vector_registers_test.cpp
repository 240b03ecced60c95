// Registers that are vectors (`.reg .v2 .b32 %v`), as a whole: packed and unpacked by mov, and nothing else takes them
// for a number.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

std::string RegisterModule(const std::string& body) {
  return ".version 8.3\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) {\n"
         ".reg .b16 %h; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f64 %d; .reg .b128 %q<2>;\n"
         ".reg .v2 .b8 %bytes; .reg .v2 .b16 %halves; .reg .v4 .b16 %four; .reg .v2 .b32 %v; .reg .v2 .u32 %u; .reg "
         ".v2 .f32 %f;\n"
         ".reg .v4 .b8 %quad; .reg .v2 .b64 %wide; .reg .v4 .b32 %words;\n"
         "ld.param.u64 %rd0, [out];\n" +
         body + "\nret;\n}\n";
}

LaunchFault Run(const std::string& body, const std::string& tiers, std::vector<std::uint32_t>& values) {
  Engine::Options options;
  options.tiers = tiers;
  test::Executor executor(options);
  const std::uint64_t device = executor.Upload(values);
  const LaunchFault fault =
      executor.Launch(RegisterModule(body), "k", {1, 1, 1}, {1, 1, 1}, test::ParamBlock().Add(device));
  executor.Download(device, values);
  return fault;
}

}  // namespace

TEST_CASE("VectorRegisters_AreMovedWhole") {
  struct Case {
    std::string body;
    std::vector<std::uint32_t> want;  // of what was 0x11223344, 0x55667788, 0, 0
  };
  const std::string load = "ld.global.v2.b32 %v, [%rd0];\nld.global.b64 %rd1, [%rd0];\n";
  const std::vector<Case> cases = {
      {"mov.b64 %rd2, %v; st.global.b64 [%rd0+8], %rd2;", {0x11223344, 0x55667788, 0x11223344, 0x55667788}},
      {"mov.b64 %d, %v; st.global.f64 [%rd0+8], %d;", {0x11223344, 0x55667788, 0x11223344, 0x55667788}},
      {"mov.b64 %u, %rd1; st.global.u32 [%rd0+8], %u.y; st.global.u32 [%rd0+12], %u.x;",
       {0x11223344, 0x55667788, 0x55667788, 0x11223344}},
      {"mov.b64 %f, %rd1; mov.b64 %rd2, %f; st.global.b64 [%rd0+8], %rd2;",
       {0x11223344, 0x55667788, 0x11223344, 0x55667788}},
      {"mov.b64 %four, %rd1; st.global.v4.b16 [%rd0+8], {%four.w, %four.z, %four.y, %four.x};",
       {0x11223344, 0x55667788, 0x77885566, 0x33441122}},
      {"mov.b32 %halves, %v.y; mov.b32 %r1, %halves; st.global.u32 [%rd0+8], %r1;",
       {0x11223344, 0x55667788, 0x55667788, 0}},
      {"mov.b32 %quad, %v.x; st.global.v2.b8 [%rd0+8], {%quad.w, %quad.y};", {0x11223344, 0x55667788, 0x3311, 0}},
      {"mov.b32 {%h, _}, %v.x; mov.b16 %bytes, %h; st.global.b8 [%rd0+8], %bytes.y;",
       {0x11223344, 0x55667788, 0x33, 0}},
      {"mov.b64 %v, 0x100000002; st.global.v2.b32 [%rd0+8], %v;", {0x11223344, 0x55667788, 2, 1}},
      {"mov.b128 %q0, {%rd1, %rd1}; mov.b128 %words, %q0; mov.b128 %q1, %words; mov.b128 %wide, %q1; st.global.b64 "
       "[%rd0+8], %wide.y;",
       {0x11223344, 0x55667788, 0x11223344, 0x55667788}},
  };
  for (const std::string tiers : {"off", "interpret"}) {
    for (const Case& one : cases) {
      std::vector<std::uint32_t> values = {0x11223344, 0x55667788, 0, 0};
      const LaunchFault fault = Run(load + one.body, tiers, values);
      INFO(one.body << " with tiers " << tiers << ": " << fault.text);
      CHECK(fault.kind == FaultKind::kNone);
      CHECK(values == one.want);
    }
  }
}

// ptxas refuses each of them.
TEST_CASE("VectorRegisters_WhereANumberIsWanted_AreRefused") {
  for (const char* wrong :
       {"add.u32 %v, %v, %v;", "add.u32 %r1, %v, %r2;", "cvt.u64.u32 %rd1, %v;", "mov.b32 %r1, %v;",
        "mov.b64 %rd1, %words;", "mov.b64 %v, %u;", "st.global.b64 [%rd0], %v;", "mov.b64 {%r1, %r2}, %v;"}) {
    std::vector<std::uint32_t> values(4);
    INFO(wrong);
    CHECK(Run(wrong, "off", values).kind != FaultKind::kNone);
  }
}
