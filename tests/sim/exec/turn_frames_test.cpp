// Frames of warps that take turns at barriers: bounded, as they lie on a worker's stack.
#include <catch2/catch.hpp>
#include <string>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/turns.h"

using namespace gridloom;

namespace {

/// A kernel whose threads have `words` words to keep at a barrier.
std::string KeepingKernel(unsigned words) {
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry keep(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<)" + std::to_string(words + 1) +
                     R"(>, %t, %sum; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %t, %tid.x; mul.wide.u32 %rd3, %t, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
)";
  for (unsigned i = 0; i < words; ++i)
    text += "  ld.global.u32 %r" + std::to_string(i) + ", [%rd1+" + std::to_string(4096 * i) + "];\n";
  text += "  bar.sync 0;\n  mov.u32 %sum, 0;\n";
  for (unsigned i = 0; i < words; ++i) text += "  mad.lo.u32 %sum, %sum, 3, %r" + std::to_string(i) + ";\n";
  return text + "  st.global.u32 [%rd2], %sum;\n  ret;\n}\n";
}

exec::CompiledKernel CompileKeeping(unsigned words, unsigned threads) {
  DiagnosticSink sink;
  const std::unique_ptr<ptx::Module> module = ptx::ParseModule(KeepingKernel(words), sink);
  REQUIRE_FALSE(sink.has_errors());
  exec::CompileOptions options;
  options.guard_zones = true;
  options.block[0] = threads;
  options.block[1] = options.block[2] = 1;
  exec::CompiledKernel compiled;
  exec::gridloom_compile(module.get(), "keep", &options, &compiled);
  REQUIRE(compiled.error.empty());
  REQUIRE_FALSE(compiled.object.empty());
  return compiled;
}

}  // namespace

TEST_CASE("TurnFrames_ThatWouldBeTooLarge_AreStacksInstead") {
  constexpr unsigned kWords = 60;  // of 128 bytes each for a warp
  const exec::CompiledKernel few = CompileKeeping(kWords, 256);
  CHECK(few.turns);
  CHECK(few.by_cta);
  CHECK_FALSE(few.needs_fiber);
  CHECK(few.frame_bytes >= 8 * kWords * 128);
  CHECK(few.frame_bytes < exec::kMostTurnFrames + 8192);
  const exec::CompiledKernel many = CompileKeeping(kWords, 1024);
  CHECK_FALSE(many.turns);
  CHECK(many.needs_fiber);
  CHECK(many.simple_barriers);
  CHECK(many.frame_bytes < 32 * kWords * 128);
}
