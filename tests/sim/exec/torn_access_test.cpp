// Strong vector accesses are seen whole by other threads: one CTA keeps storing pairs that belong together, the others
// look.
#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

/// `bits` of an element; `reader`: where each thread of the other CTAs looks. CTA 1's thread 0 (or all of its threads)
/// stores (CTA 0 runs alone: the runtime times it.) {i, i * 3 + 1} for i = 1 … rounds; what does not fit counts in
/// out[0], looks in out[1].
std::string Kernel(unsigned bits, bool every_thread) {
  const std::string b = std::to_string(bits), type = ".u" + b, bytes = std::to_string(bits / 4);
  const std::string reg = bits == 64 ? "%rl" : "%r";
  return R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry torn(.param .u64 cells, .param .u64 out, .param .u32 rounds)
{
  .reg .b32 %r<20>; .reg .b64 %rl<20>; .reg .b64 %rd<8>; .reg .pred %p<6>;
  ld.param.u64 %rd1, [cells];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r10, [rounds];
  mov.u32 %r11, %ctaid.x;
  mov.u32 %r12, %tid.x;
)" + std::string(every_thread ? "  mul.wide.u32 %rd3, %r12, " + bytes + ";\n  add.u64 %rd1, %rd1, %rd3;\n" : "") +
         R"(
  setp.ne.u32 %p1, %r11, 1;
  mov.u32 %r13, 0;
  @%p1 bra READ;
)" + std::string(every_thread ? "" : "  setp.ne.u32 %p2, %r12, 0;\n  @%p2 bra DONE;\n") +
         R"(
WRITE:
  add.u32 %r13, %r13, 1;
  cvt.u)" +
         b + ".u32 " + reg + "1, %r13;\n  mad.lo.u" + b + " " + reg + "2, " + reg +
         "1, 3, 1;\n  st.relaxed.gpu.global.v2" + type + " [%rd1], {" + reg + "1, " + reg + R"(2};
  setp.lt.u32 %p3, %r13, %r10;
  @%p3 bra WRITE;
  bra DONE;
READ:
  mov.u32 %r15, 0;
LOOK:
  ld.relaxed.gpu.global.v2)" +
         type + " {" + reg + "3, " + reg + "4}, [%rd1];\n  mad.lo.u" + b + " " + reg + "5, " + reg +
         "3, 3, 1;\n  setp.ne.u" + b + " %p4, " + reg + "5, " + reg + R"(4;
  @%p4 add.u32 %r15, %r15, 1;
  add.u32 %r13, %r13, 1;
  setp.lt.u32 %p3, %r13, %r10;
  @%p3 bra LOOK;
  red.global.add.u32 [%rd2], %r15;
  red.global.add.u32 [%rd2+4], %r13;
DONE:
  ret;
}
)";
}

}  // namespace

TEST_CASE("StrongVectorAccess_OtherThreads_SeeItWhole") {
  Engine::Options options;
  options.threads = 2;
  test::Executor executor(options);
  const std::uint32_t rounds = 200'000;
  for (const unsigned bits : {32u, 64u}) {
    for (const bool every_thread : {false, true}) {
      // In the beginning, too, the cells hold a pair that fits.
      std::vector<std::uint32_t> cells(64 * 4, 0);
      for (std::size_t i = 0; i < cells.size() * 4 / (bits / 4); ++i) cells[i * (bits / 16) + bits / 32] = 1;
      const std::uint64_t d_cells = executor.Upload(cells), d_out = executor.Upload(std::vector<std::uint32_t>(2, 0));
      test::ParamBlock params;
      params.Add(d_cells).Add(d_out).Add(rounds);
      INFO(bits << " bits, " << (every_thread ? "each thread its own cell" : "one cell"));
      const LaunchFault fault = executor.Launch(Kernel(bits, every_thread), "torn", {3, 1, 1}, {64, 1, 1}, params);
      INFO(fault.text);
      REQUIRE(fault.kind == FaultKind::kNone);
      std::vector<std::uint32_t> out(2);
      executor.Download(d_out, out);
      CHECK(out[0] == 0);
      CHECK(out[1] == 2 * rounds * 64);
      executor.Free(d_cells);
      executor.Free(d_out);
    }
  }
}
