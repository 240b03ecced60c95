// Loads of neighbouring double words at places of each lane's own, as unrolled loops over rows of doubles have them,
// and vectors of two.
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

// A thread goes through its row of `numbers` and of `keys`, four a round, and what is left one by one: {sum, hash}.
// `pairs` has the row's entries by twos, at the index of the row.
const char* const kDoubleRows = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry rows(.param .u64 starts, .param .u64 numbers, .param .u64 keys, .param .u64 pairs, .param .u64 out, .param .u32 n)
{
  .reg .b32 %r<20>; .reg .b64 %rd<40>; .reg .f64 %fd<12>; .reg .pred %p<6>;
  ld.param.u64 %rd1, [starts]; ld.param.u64 %rd2, [numbers]; ld.param.u64 %rd3, [keys]; ld.param.u64 %rd4, [pairs];
  ld.param.u64 %rd5, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra END;
  mul.wide.u32 %rd6, %r5, 4;
  add.u64 %rd7, %rd1, %rd6;
  ld.global.u32 %r6, [%rd7];
  ld.global.u32 %r7, [%rd7+4];
  mul.wide.u32 %rd8, %r6, 16;
  add.u64 %rd9, %rd4, %rd8;
  ld.global.v2.f64 {%fd1, %fd2}, [%rd9];
  sub.f64 %fd1, %fd1, %fd2;
  mov.u64 %rd10, 1;
  mul.wide.s32 %rd11, %r6, 8;
  add.u64 %rd12, %rd2, %rd11;
  add.u64 %rd13, %rd3, %rd11;
FOUR:
  add.s32 %r8, %r6, 4;
  setp.gt.s32 %p2, %r8, %r7;
  @%p2 bra REST;
  ld.global.f64 %fd3, [%rd12];
  ld.global.u64 %rd14, [%rd13];
  ld.global.f64 %fd4, [%rd12+8];
  ld.global.u64 %rd15, [%rd13+8];
  ld.global.f64 %fd5, [%rd12+16];
  ld.global.u64 %rd16, [%rd13+16];
  ld.global.f64 %fd6, [%rd12+24];
  ld.global.u64 %rd17, [%rd13+24];
  add.f64 %fd1, %fd1, %fd3; add.f64 %fd1, %fd1, %fd4; add.f64 %fd1, %fd1, %fd5; add.f64 %fd1, %fd1, %fd6;
  mad.lo.u64 %rd10, %rd10, 31, %rd14; mad.lo.u64 %rd10, %rd10, 31, %rd15;
  mad.lo.u64 %rd10, %rd10, 31, %rd16; mad.lo.u64 %rd10, %rd10, 31, %rd17;
  add.u64 %rd12, %rd12, 32;
  add.u64 %rd13, %rd13, 32;
  mov.u32 %r6, %r8;
  bra FOUR;
REST:
  setp.ge.s32 %p3, %r6, %r7;
  @%p3 bra DONE;
  ld.global.f64 %fd3, [%rd12];
  ld.global.u64 %rd14, [%rd13];
  add.f64 %fd1, %fd1, %fd3;
  mad.lo.u64 %rd10, %rd10, 31, %rd14;
  add.u64 %rd12, %rd12, 8;
  add.u64 %rd13, %rd13, 8;
  add.s32 %r6, %r6, 1;
  bra REST;
DONE:
  mul.wide.u32 %rd20, %r5, 16;
  add.u64 %rd21, %rd5, %rd20;
  st.global.f64 [%rd21], %fd1;
  st.global.u64 [%rd21+8], %rd10;
END:
  ret;
}
)";

struct Result {
  double sum;
  std::uint64_t hash;
};

struct DoubleRows {
  std::vector<std::int32_t> starts{0};
  std::vector<double> numbers, pairs;
  std::vector<std::uint64_t> keys;
  std::vector<Result> out;

  explicit DoubleRows(std::uint32_t count) : out(count) {
    std::mt19937_64 random(5);
    for (std::uint32_t i = 0; i < count; ++i)
      starts.push_back(starts.back() + static_cast<std::int32_t>(random() % 23));
    for (std::int32_t i = 0; i <= starts.back() + 1; ++i) {
      numbers.push_back(static_cast<double>(random() % 100000) / 16);
      keys.push_back(random());
      pairs.push_back(static_cast<double>(random() % 1000) / 4);
      pairs.push_back(static_cast<double>(random() % 1000) / 8);
    }
  }

  Result Expected(std::size_t row) const {
    const auto first = static_cast<std::size_t>(starts[row]);
    Result result{pairs[2 * first] - pairs[2 * first + 1], 1};
    for (std::size_t i = first; i < static_cast<std::size_t>(starts[row + 1]); ++i) {
      result.sum += numbers[i];  // exact: sixteenths far below 2^53
      result.hash = result.hash * 31 + keys[i];
    }
    return result;
  }
  void Check(const std::vector<Result>& got) const {
    for (std::size_t row = 0; row < got.size(); ++row) {
      INFO("row " << row);
      const Result wanted = Expected(row);
      CHECK(got[row].sum == wanted.sum);
      CHECK(got[row].hash == wanted.hash);
    }
  }
};

}  // namespace

TEST_CASE("DoubleRows_OfDifferentLengths_AreAllRead") {
  exec::Engine::Options options;
  options.cpu_features = GENERATE("", "avx2", "baseline");
  for (const std::uint32_t block : {16u, 43u, 256u}) {
    Executor executor(options);  // one for each block, so that the kernel is built for it, and once
    for (const std::uint32_t count : {3u, 32u, 700u}) {
      DoubleRows rows(count);
      const std::uint64_t out = executor.Upload(rows.out);
      const exec::LaunchFault fault =
          executor.Launch(kDoubleRows, "rows", {(count + block - 1) / block, 1, 1}, {block, 1, 1},
                          ParamBlock()
                              .Add(executor.Upload(rows.starts))
                              .Add(executor.Upload(rows.numbers))
                              .Add(executor.Upload(rows.keys))
                              .Add(executor.Upload(rows.pairs))
                              .Add(out)
                              .Add(count));
      INFO("block of " << block << ", " << count << " rows, " << options.cpu_features << ": " << fault.text);
      REQUIRE(fault.kind == exec::FaultKind::kNone);
      executor.Download(out, rows.out);
      rows.Check(rows.out);
    }
  }
}

// Memory outside of the device's range: every access asks the runtime.
TEST_CASE("DoubleRows_InHostMemory_TakeTheSlowPath") {
  constexpr std::uint32_t kCount = 300;
  Executor executor;
  DoubleRows rows(kCount);
  const auto share = [&](auto& data) {
    REQUIRE(executor.memory().RegisterHost(data.data(), data.size() * sizeof(data[0]), false));
    return reinterpret_cast<std::uint64_t>(data.data());
  };
  const std::uint64_t out = executor.Upload(rows.out);
  const exec::LaunchFault fault = executor.Launch(kDoubleRows, "rows", {10, 1, 1}, {32, 1, 1},
                                                  ParamBlock()
                                                      .Add(executor.Upload(rows.starts))
                                                      .Add(share(rows.numbers))
                                                      .Add(share(rows.keys))
                                                      .Add(share(rows.pairs))
                                                      .Add(out)
                                                      .Add(kCount));
  INFO(fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(out, rows.out);
  rows.Check(rows.out);
}

TEST_CASE("DoubleRows_BadPlace_IsAFaultOfItsLane") {
  constexpr std::uint32_t kCount = 32;
  Executor executor;
  DoubleRows rows(kCount);
  std::size_t bad = 0;
  while (rows.starts[bad + 1] - rows.starts[bad] < 8) ++bad;
  rows.starts[bad] = 0x3000'0000;
  rows.starts[bad + 1] = 0x3000'0010;
  const exec::LaunchFault fault = executor.Launch(kDoubleRows, "rows", {1, 1, 1}, {32, 1, 1},
                                                  ParamBlock()
                                                      .Add(executor.Upload(rows.starts))
                                                      .Add(executor.Upload(rows.numbers))
                                                      .Add(executor.Upload(rows.keys))
                                                      .Add(executor.Upload(rows.pairs))
                                                      .Add(executor.Upload(rows.out))
                                                      .Add(kCount));
  INFO(fault.text);
  CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
  CHECK(fault.text.find("thread (" + std::to_string(bad) + ",0,0), PTX line 19") != std::string::npos);
}
