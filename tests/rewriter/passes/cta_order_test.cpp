// What the order of CTAs means to kernels.
#include "rewriter/passes/cta_order.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"

namespace gridloom::passes {
namespace {

/// A kernel with one body, and what it calls declared before.
struct Kernel {
  explicit Kernel(const std::string& body, const std::string& before = "") {
    const std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n" + before +
        "\n.visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<2>;\n"
        "ld.param.u64 %rd1, [p];\n" +
        body + "\nret; }\n";
    DiagnosticSink sink;
    module = ptx::ParseModule(text, sink);
    REQUIRE(!sink.has_errors());
    calls = std::make_unique<analysis::CallGraph>(*module);
    waits = std::make_unique<CtaWaits>(*module, *calls);
  }
  CtaOrder Order() const { return OrderOf(*calls, *waits, *module->FindFunction("k")); }
  bool Reads() const { return ReadsGlobal(*calls, *module->FindFunction("k")); }
  bool Managed() const { return NamesManaged(*calls, *module->FindFunction("k")); }

  std::unique_ptr<ptx::Module> module;
  std::unique_ptr<analysis::CallGraph> calls;
  std::unique_ptr<CtaWaits> waits;
};

bool OwnOrderMatters(const std::string& body) {
  const CtaOrder order = Kernel(body).Order();
  CHECK(order.why_whole == "");
  return order.own_order_matters;
}

}  // namespace

TEST_CASE("CtaOrder_Atomics_MatterUnlessTheyCommute") {
  CHECK(!OwnOrderMatters("st.global.u32 [%rd1], 1;"));
  CHECK(!OwnOrderMatters("red.global.add.u32 [%rd1], 1; red.global.add.u32 [%rd1+8], %r1;"));
  CHECK(!OwnOrderMatters("red.global.max.s32 [%rd1], %r1;"));
  CHECK(!OwnOrderMatters("atom.shared.add.u32 %r2, [%rd1], 1;"));
  CHECK(OwnOrderMatters("red.global.add.u32 [%rd1], 1; red.global.max.u32 [%rd1], 7;"));
  CHECK(OwnOrderMatters("red.global.add.f32 [%rd1], %f1;"));
  CHECK(OwnOrderMatters("atom.global.add.u32 %r2, [%rd1], 1;"));
  CHECK(OwnOrderMatters("atom.add.u32 %r2, [%rd1], 1;"));
  CHECK(OwnOrderMatters("red.global.inc.u32 [%rd1], 7;"));
}

TEST_CASE("CtaOrder_EffectsThatRangesDoNotTell_NeedTheWholeGrid") {
  CHECK(Kernel("call (%r1), vprintf, (%rd1, %rd1);",
               ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);")
            .Order()
            .why_whole == "it prints");
  CHECK(Kernel("call (%rd2), malloc, (%rd1);", ".extern .func (.param .b64 r) malloc(.param .b64 a);")
            .Order()
            .why_whole == "it allocates memory");
  const CtaOrder texture = Kernel("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1}];").Order();
  CHECK(texture.why_whole == "it reads or writes textures or surfaces (tex.1d.v4.f32.s32)");
  CHECK(texture.loc.line != 0);
  CHECK(Kernel("txq.width.b32 %r1, [%rd1];").Order().why_whole == "");
  CHECK(
      Kernel("again: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again;").Order().why_whole ==
      "a loop may wait for what another CTA writes (ld.volatile.global.u32)");
}

TEST_CASE("CtaOrder_ReadsGlobal_SeesLoadsThatOtherKernelsChange") {
  CHECK(!Kernel("st.global.u32 [%rd1], 1;").Reads());
  CHECK(!Kernel(".shared .u32 s; ld.shared.u32 %r1, [s];").Reads());
  CHECK(!Kernel("ld.const.u32 %r1, [c];", ".const .u32 c = 7;").Reads());
  CHECK(Kernel("ld.global.nc.u32 %r1, [%rd1];").Reads());
  CHECK(Kernel("ld.u32 %r1, [%rd1];").Reads());
  CHECK(Kernel("call f, (%rd1);",
               ".func f(.param .b64 a) { .reg .b64 %rd1; .reg .b32 %r1; ld.param.u64 %rd1, [a]; ld.global.u32 %r1, "
               "[%rd1]; ret; }")
            .Reads());
}

TEST_CASE("CtaOrder_ManagedVariables_AreFoundWhereTheKernelNamesThem") {
  const std::string variables =
      ".global .attribute(.managed) .align 4 .u32 m; .global .u64 way = generic(m); .global .u64 round[2] = {ring, "
      "way};"
      ".global .u64 ring = round; .global .u32 plain;";
  CHECK(!Kernel("st.global.u32 [%rd1], 1;", variables).Managed());
  CHECK(!Kernel("st.global.u32 [plain], 1;", variables).Managed());
  CHECK(Kernel("st.global.u32 [m], 1;", variables).Managed());
  CHECK(Kernel("cvta.global.u64 %rd1, m; st.u32 [%rd1], 1;", variables).Managed());
  CHECK(Kernel("ld.global.u64 %rd1, [way]; st.u32 [%rd1], 1;", variables).Managed());
  CHECK(Kernel("ld.global.u64 %rd1, [ring]; st.u32 [%rd1], 1;", variables).Managed());
  const std::string function = ".func f() { st.global.u32 [m], 1; ret; }";
  CHECK(Kernel("call f;", variables + function).Managed());
  CHECK(!Kernel("", variables + function).Managed());
}

}  // namespace gridloom::passes
