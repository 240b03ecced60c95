// LaunchParams::stack_bytes: how deep functions may recurse, and what that takes of others.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/exec/contract/stack_use.h"
#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {
namespace {

using namespace exec;

/// Each level has a frame of 64 bytes and counts itself there before and after it goes deeper. The kernel's threads go
/// `levels` deep.
const std::string kRecursive = R"(.version 8.0
.target sm_75
.address_size 64
.func (.param .b32 result) deeper(.param .b32 levels)
{
  .local .align 16 .b8 frame[64];
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<2>;
  ld.param.u32 %r1, [levels];
  mov.u64 %rd1, frame;
  st.local.u32 [%rd1+60], %r1;
  mov.u32 %r3, 0;
  setp.le.u32 %p1, %r1, 1;
  @%p1 bra DONE;
  sub.u32 %r2, %r1, 1;
  {
    .param .b32 below;
    .param .b32 its;
    st.param.b32 [its], %r2;
    call.uni (below), deeper, (its);
    ld.param.b32 %r3, [below];
  }
DONE:
  ld.local.u32 %r4, [%rd1+60];
  add.u32 %r5, %r3, %r4;
  st.param.b32 [result], %r5;
  ret;
}
.visible .entry k(.param .u64 out, .param .u32 levels)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [levels];
  {
    .param .b32 sum;
    .param .b32 its;
    st.param.b32 [its], %r1;
    call.uni (sum), deeper, (its);
    ld.param.b32 %r2, [sum];
  }
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

FaultKind Run(const std::string& tiers, std::uint32_t levels, std::optional<std::uint32_t> stack_bytes) {
  Engine::Options options;
  options.threads = 2;
  options.tiers = tiers;
  Executor executor(std::move(options));
  std::vector<std::uint32_t> values(96);
  const std::uint64_t out = executor.Upload(values);
  const ParamBlock params = ParamBlock().Add(out).Add(levels);
  LaunchParams launch;
  launch.grid = {1, 1, 1};
  launch.block = {96, 1, 1};
  launch.params = params.bytes();
  launch.stack_bytes = stack_bytes;
  const LaunchFault fault = executor.Launch(kRecursive, "k", std::move(launch));
  executor.Download(out, values);
  INFO(fault.text);
  if (fault.kind == FaultKind::kNone) CHECK(values == std::vector<std::uint32_t>(96, levels * (levels + 1) / 2));
  return fault.kind;
}

}  // namespace

TEST_CASE("StackLimit_IsHowDeepFunctionsRecurse") {
  CHECK(Run("off", 14, std::nullopt) == FaultKind::kNone);
  CHECK(Run("off", 200, std::nullopt) == FaultKind::kIllegalAddress);
  CHECK(Run("off", 200, 16 << 10) == FaultKind::kNone);
  CHECK(Run("off", 7000, 448 << 10) == FaultKind::kNone);
  CHECK(Run("off", 300, 16 << 10) == FaultKind::kIllegalAddress);
  CHECK(Run("off", 14, 256) == FaultKind::kIllegalAddress);
  CHECK(Run("interpret", 14, std::nullopt) == FaultKind::kNone);
  CHECK(Run("interpret", 200, std::nullopt) == FaultKind::kIllegalAddress);
}

TEST_CASE("StackLimit_IsOnlyOfKernelsWhoseStackIsOpen") {
  auto memory = std::move(*DeviceMemory::Create({.range_bytes = std::uint64_t{1} << 32}));
  const auto find = [&](const std::string& text) {
    DiagnosticSink sink;
    auto module = ptx::ParseModule(text, sink);
    REQUIRE(!sink.has_errors());
    return std::move(*Program::Load(std::move(module), text, *memory));
  };
  const auto recursive = find(kRecursive);
  CHECK(recursive->FindKernel("k")->open_stack);
  CHECK(recursive->FindKernel("k")->local_bytes == 64);
  CHECK(recursive->FindKernel("k")->LocalBytes(4096) == 4160);
  // The same without the call to itself.
  std::string flat = kRecursive;
  const std::size_t begin = flat.find("  {\n    .param .b32 below;"), end = flat.find("DONE:");
  flat.erase(begin, end - begin);
  const auto once = find(flat);
  CHECK(!once->FindKernel("k")->open_stack);
  CHECK(once->FindKernel("k")->LocalBytes(4096) == 64);
}

/// A chain of calls as long as a module may be: whoever follows it does not go down on the host's stack.
TEST_CASE("StackUse_OfALongChainOfCalls_IsThatOfItsFrames") {
  constexpr int kFunctions = 200'000;
  std::string text = ".version 8.0\n.target sm_75\n.address_size 64\n";
  for (int i = kFunctions - 1; i >= 0; --i) {
    text += ".func f" + std::to_string(i) + "()\n{\n";
    if (i % 1000 == 0) text += "  .local .align 4 .b8 frame[4];\n";
    if (i + 1 < kFunctions) text += "  call.uni f" + std::to_string(i + 1) + ";\n";
    text += "  ret;\n}\n";
  }
  text += ".visible .entry k()\n{\n  call.uni f0;\n  ret;\n}\n";
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  REQUIRE(!sink.has_errors());
  const StackUse use = FindStackUse(*module, *module->FindFunction("k"));
  CHECK(use.bytes == 16 * (kFunctions / 1000));
  CHECK(!use.open);
}

}  // namespace gridloom::test
