// Accesses that have no test of their own, because guard zones lie around device memory: rows and single places at
// 32-bit indices of any value, bases that are none, and pointers that walk out of what is allocated.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

struct Kind {
  const char* type;
  const char* registers;
  unsigned bytes;
};
constexpr Kind kKinds[] = {
    {"u8", "%h1", 1}, {"u32", "%r9", 4}, {"u64", "%rd9", 8}, {"v4.u32", "{%r9, %r10, %r11, %r12}", 16}};
constexpr std::uint32_t kAccessLine = 17;

/// Thread i loads element `index` + i of `in` (or all of them `index`), and stores it as element i of `out`; or the
/// other way round.
std::string RowKernel(const Kind& kind, bool row, bool store) {
  const std::string size = std::to_string(kind.bytes), type = kind.type, registers = kind.registers;
  return R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry rows(.param .u64 in, .param .u64 out, .param .u32 index)
{
  .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [index];
  mov.u32 %r2, %tid.x;
)" + std::string(row ? "  add.s32 %r3, %r1, %r2;\n" : "  mov.u32 %r3, %r1;\n") +
         "  mul.wide.s32 %rd3, %r3, " + size + ";\n  add.s64 %rd4, %rd1, %rd3;\n  mul.wide.u32 %rd5, %r2, " + size +
         ";\n  add.s64 %rd6, %rd2, %rd5;\n" +
         (store ? "  ld.global." + type + " " + registers + ", [%rd6];\n  st.global." + type + " [%rd4], " + registers
                : "\n  ld.global." + type + " " + registers + ", [%rd4];\n  st.global." + type + " [%rd6], " +
                      registers) +
         ";\n  ret;\n}\n";
}

exec::Engine::Options MachineCode(const char* features) {
  exec::Engine::Options options;
  options.cpu_features = features;
  options.tiers = "off";
  return options;
}

}  // namespace

TEST_CASE("GuardZone_AnyIndex_IsAFaultAtItsAddress") {
  const Kind kind = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
  const bool row = GENERATE(true, false), store = GENERATE(true, false);
  constexpr std::uint32_t threads = 41;  // a whole warp and a part of one
  Executor executor(MachineCode(GENERATE("", "baseline")));
  const std::string ptx = RowKernel(kind, row, store);
  const std::uint64_t in = executor.Upload(std::vector<std::uint8_t>(64 * 16, 7));
  const std::uint64_t out = executor.Upload(std::vector<std::uint8_t>(64 * 16, 9));
  const auto launch = [&](std::uint32_t index) {
    return executor.Launch(ptx, "rows", {2, 1, 1}, {threads, 1, 1}, ParamBlock().Add(in).Add(out).Add(index));
  };
  for (const std::uint32_t index : {0x7fff'fff0u, 0x8000'0000u, 0xe000'0000u, 0x2000'0000u}) {
    const exec::LaunchFault fault = launch(index);
    INFO(kind.type << (store ? " stored" : " loaded") << " at index " << index << ": " << fault.text);
    REQUIRE(fault.kind == exec::FaultKind::kIllegalAddress);
    // LLVM may give a load the line of the store behind it.
    CHECK((fault.ptx_line == kAccessLine || fault.ptx_line == kAccessLine + 1));
    bool of_a_thread = false;
    for (std::uint32_t thread = 0; thread < (row ? threads : 1); ++thread) {
      const auto element = static_cast<std::int32_t>(index + (row ? thread : 0));
      const std::uint64_t address = in + static_cast<std::uint64_t>(std::int64_t{element} * kind.bytes);
      of_a_thread |= fault.address - address < kind.bytes;
    }
    CHECK(of_a_thread);
    REQUIRE(launch(0).kind == exec::FaultKind::kNone);
  }
}

TEST_CASE("GuardZone_BasesThatAreNone_FaultOrAskTheRuntime") {
  const Kind& kind = kKinds[1];
  const bool row = GENERATE(true, false), store = GENERATE(true, false);
  Executor executor(MachineCode(GENERATE("", "avx2", "baseline")));
  const std::string ptx = RowKernel(kind, row, store);
  alignas(64) static std::uint32_t host[64];
  std::fill(std::begin(host), std::end(host), 5u);
  std::vector<std::uint32_t> data(64, 3);
  const std::uint64_t out = executor.Upload(data);
  const auto launch = [&](std::uint64_t in, std::uint32_t index) {
    return executor.Launch(ptx, "rows", {1, 1, 1}, {64, 1, 1}, ParamBlock().Add(in).Add(out).Add(index));
  };
  const std::uint64_t registered = reinterpret_cast<std::uint64_t>(host);
  for (const std::uint64_t in : {std::uint64_t{0}, std::uint64_t{4096}, registered, ~std::uint64_t{0} << 12,
                                 executor.memory().range_base() - 8, out + (std::uint64_t{1} << 39)}) {
    const exec::LaunchFault fault = launch(in, 0);
    INFO(in << ": " << fault.text);
    CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
  }
  const exec::LaunchFault misaligned = launch(out + 2, 0);
  INFO(misaligned.text);
  CHECK(misaligned.kind == exec::FaultKind::kMisalignedAddress);
  REQUIRE(executor.memory().RegisterHost(host, sizeof host, false));
  const exec::LaunchFault fault = launch(registered, 0);
  INFO(fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(out, data);
  if (store) CHECK(host[0] == 3);
  else CHECK(std::count(data.begin(), data.end(), 5u) == 64);
}

namespace {

// Thread i adds up `count` words, `step` apart, from its own on; out may be null where nobody wants the sum.
const char* const kWalk = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry walk(.param .u64 in, .param .u64 out, .param .u32 count, .param .u32 step)
{
  .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [step];
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  mul.wide.s32 %rd5, %r2, 4;
  mov.u32 %r4, 0;
  mov.u32 %r5, 0;
AGAIN:
  ld.global.u32 %r6, [%rd4];
  add.u32 %r5, %r5, %r6;
  add.s64 %rd4, %rd4, %rd5;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, %r1;
  @%p1 bra AGAIN;
  setp.eq.s64 %p2, %rd2, 0;
  @%p2 bra END;
  add.s64 %rd6, %rd2, %rd3;
  st.global.u32 [%rd6], %r5;
END:
  ret;
}
)";

}  // namespace

TEST_CASE("GuardZone_PointersThatWalk_StopWhereMemoryEnds") {
  Executor executor(MachineCode(GENERATE("", "avx2", "baseline")));
  constexpr std::uint32_t kWords = 4096;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(kWords, 1));
  std::vector<std::uint32_t> sums(32);
  const std::uint64_t out = executor.Upload(sums);
  const auto launch = [&](std::uint64_t to, std::uint32_t count, std::int32_t step) {
    return executor.Launch(kWalk, "walk", {1, 1, 1}, {32, 1, 1}, ParamBlock().Add(in).Add(to).Add(count).Add(step));
  };
  REQUIRE(launch(out, kWords / 32, 32).kind == exec::FaultKind::kNone);
  executor.Download(out, sums);
  for (const std::uint32_t sum : sums) CHECK(sum == kWords / 32);
  CHECK(launch(0, kWords / 32, 32).kind == exec::FaultKind::kNone);  // the kernel asks whether it is null
  for (const std::int32_t step : {32, -32, 1024, 0x7fff'ffff, -0x7fff'ffff}) {
    const exec::LaunchFault fault = launch(out, 0xffff'ffff, step);
    INFO(step << ": " << fault.text);
    CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
    CHECK(fault.ptx_line == 18);
  }
}

namespace {

// As above, but only one round's word counts: that of round `wanted`, or what is read last.
const char* const kSeldom = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry seldom(.param .u64 in, .param .u64 out, .param .u32 count, .param .u32 step, .param .u32 wanted)
{
  .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [step];
  ld.param.u32 %r7, [wanted];
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  mul.wide.s32 %rd5, %r2, 4;
  mov.u32 %r4, 0;
  mov.u32 %r5, 0;
AGAIN:
  ld.global.u32 %r6, [%rd4];
  setp.ne.u32 %p2, %r4, %r7;
  @%p2 bra NEXT;
  mul.lo.u32 %r5, %r6, %r6;
  xor.b32 %r5, %r5, %r4;
  st.global.u32 [%rd2], %r5;
NEXT:
  add.s64 %rd4, %rd4, %rd5;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, %r1;
  @%p1 bra AGAIN;
  add.s64 %rd6, %rd2, %rd3;
  st.global.u32 [%rd6], %r6;
  ret;
}
)";

}  // namespace

// A load whose result only some rounds use may be moved to where it is used. What is read there must still be memory.
TEST_CASE("GuardZone_PointersThatWalkAndAreSeldomUsed_NeverReadOutsideOfMemory") {
  Executor executor(MachineCode(GENERATE("", "avx2", "baseline")));
  constexpr std::uint32_t kWords = 4096;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(kWords, 1));
  std::vector<std::uint32_t> last(32);
  const std::uint64_t out = executor.Upload(last);
  const auto launch = [&](std::uint32_t count, std::int32_t step, std::uint32_t wanted) {
    return executor.Launch(kSeldom, "seldom", {1, 1, 1}, {32, 1, 1},
                           ParamBlock().Add(in).Add(out).Add(count).Add(step).Add(wanted));
  };
  REQUIRE(launch(kWords / 32, 32, 3).kind == exec::FaultKind::kNone);
  executor.Download(out, last);
  for (const std::uint32_t word : last) CHECK(word == 1);
  for (const std::int32_t step : {0x4000'0000, -0x4000'0000}) {  // beyond the range and its zones in some 512 rounds
    for (const std::uint32_t wanted : {2000u, 5000u}) {
      const exec::LaunchFault fault = launch(2001, step, wanted);
      INFO(step << ", " << wanted << ": " << fault.text);
      CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
      CHECK(fault.ptx_line == 19);
    }
  }
}
