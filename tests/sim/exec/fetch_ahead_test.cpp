// Which loops fetch ahead what their lanes go through (sim/exec/compiler/fetch_ahead.h).
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/compiler.h"

namespace gridloom::exec {
namespace {

/// Each thread goes through a part of `values`, from `first` on, `step` bytes a round.
std::string Kernel(std::string_view first, std::string_view step) {
  return R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry walk(.param .u64 starts, .param .u64 values, .param .u64 out, .param .u32 n)
{
  .reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [starts]; ld.param.u64 %rd2, [values]; ld.param.u64 %rd3, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd4, %r5, 4;
  add.u64 %rd5, %rd1, %rd4;
  ld.global.u32 %r6, [%rd5];
  mul.wide.s32 %rd6, )" +
         std::string(first) + R"(, 4;
  add.u64 %rd7, %rd2, %rd6;
  mov.u32 %r7, 0;
  mov.u32 %r8, 0;
LOOP:
  ld.global.u32 %r9, [%rd7];
  add.u32 %r8, %r8, %r9;
  add.u64 %rd7, %rd7, )" +
         std::string(step) + R"(;
  add.u32 %r7, %r7, 1;
  setp.lt.u32 %p1, %r7, %r1;
  @%p1 bra LOOP;
  add.u64 %rd8, %rd3, %rd4;
  st.global.u32 [%rd8], %r8;
  ret;
})";
}

std::size_t PrefetchesOf(const std::string& ptx, bool wanted, bool memcheck = false) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  REQUIRE(module);
  CompileOptions options;
  options.fetch_ahead = wanted;
  options.block[0] = 256, options.block[1] = options.block[2] = 1;
  options.keep_ir = true;
  options.memcheck = memcheck;
  CompiledKernel compiled;
  gridloom_compile(module.get(), "walk", &options, &compiled);
  REQUIRE(compiled.error.empty());
  const std::size_t warp_form = compiled.ir.find("; ---- warp form, optimised");
  REQUIRE(warp_form != std::string::npos);
  std::size_t count = 0;
  for (std::size_t at = warp_form; (at = compiled.ir.find("call void @llvm.prefetch", at)) != std::string::npos; ++at)
    ++count;
  return count;
}

TEST_CASE("fetch ahead: lanes with places of their own, where that is wanted") {
  const std::string rows = Kernel("%r6", "4");
  CHECK(PrefetchesOf(rows, true) > 0);
  CHECK(PrefetchesOf(rows, false) == 0);
}

TEST_CASE("fetch ahead: not where lanes lie side by side, nor in large steps") {
  CHECK(PrefetchesOf(Kernel("%r5", "4"), true) == 0);
  CHECK(PrefetchesOf(Kernel("%r6", "4096"), true) == 0);
}

TEST_CASE("fetch ahead: checked code looks at every access, and fetches none") {
  CHECK(PrefetchesOf(Kernel("%r6", "4"), true, true) == 0);
}

}  // namespace
}  // namespace gridloom::exec
