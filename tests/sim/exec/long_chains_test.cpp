// Kernels in which each instruction depends on the one before it, compiled by a thread with little room for recursion.
#include <pthread.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/contract/bytecode.h"

namespace gridloom::exec {
namespace {

constexpr int kLinks = 4000;

/// An address, or the condition of a loop, at the end of a chain.
std::string Kernel(bool loops) {
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry chain(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
LOOP:
)";
  for (int i = 0; i < kLinks; ++i) {
    text += "  mul.lo.s32 %r1, %r1, " + std::to_string(2 * i + 3) + "; xor.b32 %r1, %r1, " + std::to_string(7 * i + 1) +
            ";\n";
  }
  text += loops ? "  setp.eq.s32 %p1, %r1, 5; @%p1 bra LOOP;\n" : "  and.b32 %r1, %r1, 12;\n";
  return text + R"(
  cvt.u64.u32 %rd2, %r1;
  add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], 1;
  ret;
})";
}

void OnShortStack(std::function<void()> function) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 192 << 10) == 0);
  pthread_t thread;
  const auto main = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, main, &function) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace

TEST_CASE("LongChain_ThreadWithAShortStack_IsCompiledAndInterpreted") {
  const bool loops = GENERATE(false, true);
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(Kernel(loops), sink);
  REQUIRE(module);
  CompileOptions options;
  options.block[0] = 32, options.block[1] = options.block[2] = 1;
  CompiledKernel compiled;
  InterpretedKernel interpreted;
  OnShortStack([&] { gridloom_compile(module.get(), "chain", &options, &compiled); });
  OnShortStack([&] { gridloom_interpret(module.get(), "chain", &options, &interpreted); });
  CHECK(compiled.error.empty());
  CHECK_FALSE(compiled.object.empty());
  CHECK(interpreted.error.empty());
  CHECK(interpreted.refuses.empty());
}

}  // namespace gridloom::exec
