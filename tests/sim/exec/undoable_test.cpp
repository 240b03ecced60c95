// Kernels whose runs can be undone, and what makes that impossible.
#include "sim/exec/ranges/undoable.h"

#include <catch2/catch.hpp>

#include "tests/rewriter/analysis/parse.h"

using namespace gridloom;
using analysis::testing::ParseItems;

namespace {

/// Why the kernel `k` of a module cannot be undone, which has the body, and before it what is declared.
std::string WhyNot(const std::string& body, const std::string& declared = "") {
  const auto module = ParseItems(
      declared + "\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<8>; .reg .b64 %rd<8>;\n" + body + "\nret;\n}\n");
  const analysis::CallGraph calls(*module);
  return exec::WhyNotUndoable(calls, *std::as_const(*module).FindFunction("k"));
}

}  // namespace

TEST_CASE("WhyNotUndoable_MemoryAlone_CanBeUndone") {
  CHECK(WhyNot("") == "");
  CHECK(WhyNot("ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; atom.global.add.u32 %r2, [%rd1], %r1; st.global.u32 "
               "[%rd1], %r2;") == "");
  CHECK(WhyNot("call.uni f;", ".func f() { ret; }") == "");
}

TEST_CASE("WhyNotUndoable_WhatIsMoreThanMemory_IsNamed") {
  const std::string malloc = ".extern .func (.param .b64 r) malloc(.param .b64 n);\n";
  const std::string call = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 8; call.uni (r), malloc, (n); }";
  CHECK(WhyNot(call, malloc) == "it takes memory of the device's heap (malloc)");
  CHECK(WhyNot("call.uni f;", malloc + ".func f() {\n" + call + "ret; }") ==
        "it takes memory of the device's heap (malloc)");
  CHECK(WhyNot("", malloc) == "");  // nobody calls it
  CHECK(WhyNot("{ .param .b32 r; .param .b64 f; .param .b64 a; call.uni (r), vprintf, (f, a); }",
               ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);") == "it prints (vprintf)");
  CHECK(WhyNot("call.uni cnpSomething;", ".extern .func cnpSomething();") ==
        "it calls the device runtime (cnpSomething)");
  CHECK(WhyNot("call.uni other;", ".extern .func other();") == "it calls what is not in its module (other)");
  CHECK(WhyNot("ld.param.u64 %rd1, [p]; suld.b.1d.b32.trap %r1, [%rd1, {%r2}];") ==
        "it works on textures or surfaces (suld.b.1d.b32.trap)");
}
