// Kernels with so many accesses to addresses without a pattern that most of them are made by call: every size and
// count, loads of neighbouring words, indices and plain addresses, in global, shared and local memory, for whole warps
// and for some lanes; and the PTX line of an access that faults.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

/// How one access addresses memory and what it moves.
struct Kind {
  const char* type;       ///< of the PTX instruction, with the vector part
  unsigned count, bytes;  ///< elements of a thread, and bytes of one
};
constexpr Kind kKinds[] = {{"u8", 1, 1},     {"u16", 1, 2},    {"u32", 1, 4},    {"u64", 1, 8},    {"v2.u8", 2, 1},
                           {"v4.u16", 4, 2}, {"v2.u32", 2, 4}, {"v4.u32", 4, 4}, {"v2.u64", 2, 8}, {"v4.u8", 4, 1}};
constexpr unsigned kAccessRounds = 3;  // of all kinds: 30 loads and 30 stores, each kind by way of each space
constexpr unsigned kRowBytes = 32;     // of a thread and access

std::string Registers(const Kind& kind) {
  const char* const prefix = kind.bytes == 8 ? "%rd" : kind.bytes == 4 ? "%r" : "%h";
  std::string text;
  for (unsigned i = 0; i < kind.count; ++i) text += (i ? ", " : "") + std::string(prefix) + std::to_string(40 + i);
  return kind.count > 1 ? "{" + text + "}" : text;
}

/// Access k of thread i moves row 64 k + (5 i mod 64) of `from` to row 64 k + (i xor 37) of `to`: by way of shared
/// memory where k % 3 is 1, and of local memory where it is 2. Odd accesses only for threads with bit k % 5 of their
/// number set. All of it comes after a loop around every third access, so that some are in line.
std::string ManyAccesses() {
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry many(.param .u64 from, .param .u64 to)
{
  .reg .b16 %h<50>; .reg .b32 %r<50>; .reg .b64 %rd<50>; .reg .pred %p<4>;
  .shared .align 16 .b8 buffer[2048];
  .local .align 16 .b8 own[512];
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mul.lo.u32 %r2, %r1, 5; and.b32 %r2, %r2, 63;
  xor.b32 %r3, %r1, 37;
  mul.wide.u32 %rd3, %r2, 32; add.u64 %rd3, %rd1, %rd3;
  mul.wide.u32 %rd4, %r3, 32; add.u64 %rd4, %rd2, %rd4;
  shl.b32 %r4, %r2, 5; mov.u32 %r5, buffer; add.u32 %r4, %r4, %r5;
  and.b32 %r6, %r2, 15; shl.b32 %r6, %r6, 5; mov.u32 %r7, own; add.u32 %r6, %r6, %r7;
  mul.wide.u32 %rd5, %r3, 4; add.u64 %rd5, %rd5, %rd4;
)";
  unsigned access = 0;
  for (unsigned round = 0; round < kAccessRounds; ++round) {
    for (const Kind& kind : kKinds) {
      const std::string k = std::to_string(access), row = std::to_string(access * 64 * kRowBytes),
                        registers = Registers(kind);
      if (access % 2 == 1)
        text += "  and.b32 %r8, %r1, " + std::to_string(1u << access % 5) + "; setp.eq.u32 %p1, %r8, 0; @%p1 bra SKIP" +
                k + ";\n";
      if (access % 3 == 0) text += "  mov.u32 %r9, 0;\nLOOP" + k + ":\n";
      text += "  ld.global." + std::string(kind.type) + " " + registers + ", [%rd3+" + row + "];\n";
      const char* const by = access % 3 == 1 ? "shared" : "local";
      const char* const place = access % 3 == 1 ? "%r4" : "%r6";
      if (access % 3 != 0) {
        text += "  st." + std::string(by) + "." + kind.type + " [" + place + "], " + registers + ";\n";
        text += "  ld." + std::string(by) + "." + kind.type + " " + registers + ", [" + place + "];\n";
      }
      text += "  st.global." + std::string(kind.type) + " [%rd4+" + row + "], " + registers + ";\n";
      if (access % 3 == 0) text += "  add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r2; @%p2 bra LOOP" + k + ";\n";
      if (access % 2 == 1) text += "SKIP" + k + ":\n";
      ++access;
    }
  }
  return text + "  ret;\n}\n";
}

std::vector<std::uint8_t> Moved(const std::vector<std::uint8_t>& from, unsigned threads) {
  std::vector<std::uint8_t> to(from.size(), 0xee);
  for (unsigned access = 0; access < kAccessRounds * std::size(kKinds); ++access) {
    const Kind& kind = kKinds[access % std::size(kKinds)];
    for (unsigned i = 0; i < threads; ++i) {
      if (access % 2 == 1 && (i >> access % 5 & 1) == 0) continue;
      const unsigned source = (access * 64 + 5 * i % 64) * kRowBytes, target = (access * 64 + (i ^ 37)) * kRowBytes;
      std::copy_n(from.begin() + source, kind.count * kind.bytes, to.begin() + target);
    }
  }
  return to;
}

/// Sums of rows of eight words from many starts: their loads are made four at a time.
std::string ManyRows() {
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry rows(.param .u64 index, .param .u64 from, .param .u64 to)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>;
  ld.param.u64 %rd1, [index]; ld.param.u64 %rd2, [from]; ld.param.u64 %rd3, [to];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd3, %rd4;
  mov.u32 %r2, 0;
)";
  for (unsigned row = 0; row < 8; ++row) {
    text += "  ld.global.u32 %r3, [%rd5+" + std::to_string(row * 256) +
            "];\n  mul.wide.s32 %rd7, %r3, 4; add.u64 %rd8, %rd2, %rd7;\n";
    for (unsigned word = 0; word < 8; ++word)
      text += "  ld.global.u32 %r" + std::to_string(4 + word) + ", [%rd8+" + std::to_string(4 * word) + "];\n";
    for (unsigned word = 0; word < 8; ++word) text += "  mad.lo.u32 %r2, %r2, 3, %r" + std::to_string(4 + word) + ";\n";
  }
  return text + "  st.global.u32 [%rd6], %r2;\n  ret;\n}\n";
}

}  // namespace

TEST_CASE("ManyAccesses_OfEverySizeAndSpace_MoveWhatTheySay") {
  // 45: a whole warp and a part of one. Each number of threads is a build of its own.
  const std::pair<const char*, std::vector<std::uint32_t>> kinds[] = {
      {"", {64, 45, 7}}, {"avx2", {45}}, {"baseline", {45}}};
  for (const auto& [features, numbers] : kinds) {
    exec::Engine::Options options;
    options.cpu_features = features;
    Executor executor(options);
    std::vector<std::uint8_t> from(kAccessRounds * std::size(kKinds) * 64 * kRowBytes);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
    for (const std::uint32_t threads : numbers) {
      std::vector<std::uint8_t> to(from.size(), 0xee);
      const std::uint64_t source = executor.Upload(from), target = executor.Upload(to);
      const exec::LaunchFault fault =
          executor.Launch(ManyAccesses(), "many", {1, 1, 1}, {threads, 1, 1}, ParamBlock().Add(source).Add(target));
      INFO(features << " " << threads << " " << fault.text);
      REQUIRE(fault.kind == exec::FaultKind::kNone);
      executor.Download(target, to);
      CHECK((to == Moved(from, threads)));
    }
  }
}

TEST_CASE("ManyAccesses_RowsOfNeighbouringWords_AreSummedRight") {
  for (const char* features : {"", "avx2", "baseline"}) {
    exec::Engine::Options options;
    options.cpu_features = features;
    Executor executor(options);
    constexpr unsigned kThreads = 64, kWords = 4096;
    std::vector<std::uint32_t> index(8 * kThreads), from(kWords), to(kThreads, 0), wanted(kThreads, 0);
    for (unsigned i = 0; i < index.size(); ++i) index[i] = i * 2654435761u % (kWords - 8);
    std::iota(from.begin(), from.end(), 7);
    for (unsigned i = 0; i < kThreads; ++i)
      for (unsigned row = 0; row < 8; ++row)
        for (unsigned word = 0; word < 8; ++word) wanted[i] = wanted[i] * 3 + from[index[row * kThreads + i] + word];
    const std::uint64_t target = executor.Upload(to);
    const exec::LaunchFault fault =
        executor.Launch(ManyRows(), "rows", {1, 1, 1}, {kThreads, 1, 1},
                        ParamBlock().Add(executor.Upload(index)).Add(executor.Upload(from)).Add(target));
    REQUIRE(fault.kind == exec::FaultKind::kNone);
    executor.Download(target, to);
    INFO(features);
    CHECK((to == wanted));
  }
}

TEST_CASE("ManyAccesses_OneOfThemFaults_ItsLineIsNamed") {
  Executor executor;
  const std::uint64_t first = executor.Upload(std::vector<std::uint32_t>(4096, 1)),
                      to = executor.Upload(std::vector<std::uint32_t>(64));
  const std::uint64_t freed = executor.Upload(std::vector<std::uint32_t>(1 << 20));
  executor.Free(freed);
  std::vector<std::int32_t> index(8 * 64, 0);
  index[5 * 64 + 9] = static_cast<std::int32_t>((static_cast<std::int64_t>(freed - first) + 8192) / 4);
  const std::string text = ManyRows();
  const std::string first_load = "ld.global.u32 %r4, [%rd8+0]";
  std::size_t place = 0;
  for (unsigned row = 0; row <= 5; ++row) place = text.find(first_load, place + 1);
  const auto line =
      static_cast<std::uint32_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n') + 1);
  const exec::LaunchFault fault =
      executor.Launch(text, "rows", {1, 1, 1}, {64, 1, 1}, ParamBlock().Add(executor.Upload(index)).Add(first).Add(to));
  CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
  INFO(fault.text);
  CHECK(fault.ptx_line == line);
}
