// The example of a pass in docs/extending.md.
#include <catch2/catch.hpp>

#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/registry.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"

namespace gridloom::passes {
namespace {

constexpr std::string_view kModule = R"(.version 8.0
.target sm_90
.address_size 64
.entry fetches(.param .u64 p) {
  .reg .b64 %rd<2>; .reg .f32 %f<2>; .reg .pred %q;
  ld.param.u64 %rd1, [p];
  setp.ne.u64 %q, %rd1, 0;
  @%q prefetch.global.L1 [%rd1];
  { prefetch.global.L2 [%rd1+128]; }
  ld.global.f32 %f1, [%rd1];
  ret;
}
.entry does_not() { ret; }
)";

TEST_CASE("DropPrefetch_IsFoundByName_AndDropsThemInEveryScope") {
  const Pass* pass = FindPass("drop-prefetch");
  REQUIRE(pass != nullptr);
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(kModule, sink);
  REQUIRE(!sink.has_errors());

  const auto report = pass->Run(*module);
  REQUIRE(report.ok());
  REQUIRE(report->kernels.size() == 2);
  CHECK(report->kernels[0].status == KernelStatus::kChanged);
  CHECK(report->kernels[1].status == KernelStatus::kUnchanged);
  const std::string text = ptx::PrintModule(*module);
  CHECK(text.find("prefetch") == std::string::npos);
  CHECK(text.find("ld.global.f32") != std::string::npos);
}

TEST_CASE("DropPrefetch_IsPartOfPipelines") { CHECK(Pipeline::Parse("drop-prefetch,slice").ok()); }

}  // namespace
}  // namespace gridloom::passes
