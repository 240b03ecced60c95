// Loads from several arrays at one irregular index: they share check and test, so all must be right when one of them is
// not.
#include <catch2/catch.hpp>
#include <random>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

// Threads with which[i] >= 0 add up a, b and c at 4*which[i] .. +3, then p and q at which[i], and put both sums into
// out.
const char* const kSums = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry sums(.param .u64 which, .param .u64 a, .param .u64 b, .param .u64 c, .param .u64 p, .param .u64 q, .param .u64 out)
{
  .reg .b32 %r<30>; .reg .b64 %rd<30>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [which]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b]; ld.param.u64 %rd4, [c];
  ld.param.u64 %rd5, [p]; ld.param.u64 %rd6, [q]; ld.param.u64 %rd7, [out];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r1, 128, %r2;
  mul.wide.u32 %rd8, %r3, 4;
  add.u64 %rd9, %rd1, %rd8;
  ld.global.u32 %r4, [%rd9];
  setp.lt.s32 %p1, %r4, 0;
  @%p1 bra END;
  mul.wide.s32 %rd10, %r4, 16;
  add.u64 %rd11, %rd10, %rd2; add.u64 %rd12, %rd10, %rd3; add.u64 %rd13, %rd10, %rd4;
  ld.global.u32 %r5, [%rd11]; ld.global.u32 %r6, [%rd11+4]; ld.global.u32 %r7, [%rd11+8]; ld.global.u32 %r8, [%rd11+12];
  ld.global.u32 %r9, [%rd12]; ld.global.u32 %r10, [%rd12+4]; ld.global.u32 %r11, [%rd12+8]; ld.global.u32 %r12, [%rd12+12];
  ld.global.u32 %r13, [%rd13]; ld.global.u32 %r14, [%rd13+4]; ld.global.u32 %r15, [%rd13+8]; ld.global.u32 %r16, [%rd13+12];
  add.u32 %r5, %r5, %r6; mad.lo.u32 %r5, %r7, 3, %r5; mad.lo.u32 %r5, %r8, 5, %r5;
  mad.lo.u32 %r5, %r9, 7, %r5; mad.lo.u32 %r5, %r10, 11, %r5; mad.lo.u32 %r5, %r11, 13, %r5; mad.lo.u32 %r5, %r12, 17, %r5;
  mad.lo.u32 %r5, %r13, 19, %r5; mad.lo.u32 %r5, %r14, 23, %r5; mad.lo.u32 %r5, %r15, 29, %r5; mad.lo.u32 %r5, %r16, 31, %r5;
  mul.wide.s32 %rd14, %r4, 4;
  add.u64 %rd15, %rd14, %rd5; add.u64 %rd16, %rd14, %rd6;
  ld.global.u32 %r20, [%rd15];
  ld.global.u32 %r21, [%rd16];
  mad.lo.u32 %r20, %r21, 3, %r20;
  mul.wide.u32 %rd17, %r3, 8;
  add.u64 %rd18, %rd7, %rd17;
  st.global.u32 [%rd18], %r5;
  st.global.u32 [%rd18+4], %r20;
END:
  ret;
}
)";

constexpr std::size_t kThreads = 512, kRows = 1000;

std::vector<std::uint32_t> Random(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random());
  return values;
}

/// Rows for the threads: scattered, in order, the same for all, or with gaps.
std::vector<std::int32_t> Rows(unsigned kind) {
  std::mt19937 random(kind);
  std::vector<std::int32_t> rows(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) {
    rows[i] = static_cast<std::int32_t>(random() % kRows);
    if (kind == 1) rows[i] = static_cast<std::int32_t>(i);
    if (kind == 2) rows[i] = static_cast<std::int32_t>(i / 64);
    if (kind == 3 && random() % 3 != 0) rows[i] = -1;
  }
  return rows;
}

}  // namespace

TEST_CASE("SharedIndex_AnyRows_EveryArrayGivesItsOwn") {
  exec::Engine::Options options;
  options.cpu_features = GENERATE("", "avx2", "baseline");
  Executor executor(options);
  const auto a = Random(kRows * 4, 1), b = Random(kRows * 4, 2), c = Random(kRows * 4, 3), p = Random(kRows, 4),
             q = Random(kRows, 5);
  const std::uint64_t at_a = executor.Upload(a), at_b = executor.Upload(b), at_c = executor.Upload(c);
  const std::uint64_t at_p = executor.Upload(p), at_q = executor.Upload(q);
  for (unsigned kind = 0; kind < 4; ++kind) {
    const auto rows = Rows(kind);
    const std::uint64_t which = executor.Upload(rows), out = executor.Upload(std::vector<std::uint32_t>(kThreads * 2));
    const exec::LaunchFault fault =
        executor.Launch(kSums, "sums", {kThreads / 128, 1, 1}, {128, 1, 1},
                        ParamBlock().Add(which).Add(at_a).Add(at_b).Add(at_c).Add(at_p).Add(at_q).Add(out));
    INFO(fault.text);
    REQUIRE(fault.kind == exec::FaultKind::kNone);
    std::vector<std::uint32_t> got(kThreads * 2), want(kThreads * 2);
    executor.Download(out, got);
    for (std::size_t i = 0; i < kThreads; ++i) {
      if (rows[i] < 0) continue;
      const auto row = static_cast<std::size_t>(rows[i]);
      const std::uint32_t *ra = &a[row * 4], *rb = &b[row * 4], *rc = &c[row * 4];
      want[i * 2] = ra[0] + ra[1] + ra[2] * 3 + ra[3] * 5 + rb[0] * 7 + rb[1] * 11 + rb[2] * 13 + rb[3] * 17 +
                    rc[0] * 19 + rc[1] * 23 + rc[2] * 29 + rc[3] * 31;
      want[i * 2 + 1] = p[row] + q[row] * 3;
    }
    INFO("rows of kind " << kind);
    CHECK(got == want);
    executor.Free(which);
    executor.Free(out);
  }
}

TEST_CASE("SharedIndex_OneArrayElsewhere_IsCheckedForItself") {
  exec::Engine::Options options;
  options.cpu_features = GENERATE("", "avx2", "baseline");
  Executor executor(options);
  const auto words = Random(kRows * 4, 1);
  static std::vector<std::uint32_t> host = Random(kRows * 4, 6);
  REQUIRE(executor.memory().RegisterHost(host.data(), host.size() * 4, false));
  const std::uint64_t good = executor.Upload(words), out = executor.Upload(std::vector<std::uint32_t>(kThreads * 2));
  const auto rows = Rows(0);
  const std::uint64_t which = executor.Upload(rows);
  const auto launch = [&](const std::uint64_t(&arrays)[5]) {
    ParamBlock params;
    params.Add(which);
    for (const std::uint64_t array : arrays) params.Add(array);
    return executor.Launch(kSums, "sums", {kThreads / 128, 1, 1}, {128, 1, 1}, params.Add(out));
  };
  const auto host_address = reinterpret_cast<std::uint64_t>(host.data());
  // In host memory the runtime loads; the others of the group must come out as before.
  for (std::size_t odd = 0; odd < 5; ++odd) {
    std::uint64_t arrays[5] = {good, good, good, good, good};
    arrays[odd] = host_address;
    const exec::LaunchFault fault = launch(arrays);
    INFO("array " << odd << ": " << fault.text);
    REQUIRE(fault.kind == exec::FaultKind::kNone);
    std::vector<std::uint32_t> got(kThreads * 2);
    executor.Download(out, got);
    const auto of = [&](std::size_t array) { return array == odd ? host.data() : words.data(); };
    bool equal = true;
    for (std::size_t i = 0; i < kThreads; ++i) {
      const auto row = static_cast<std::size_t>(rows[i]);
      const std::uint32_t *ra = of(0) + row * 4, *rb = of(1) + row * 4, *rc = of(2) + row * 4;
      equal &= got[i * 2] == ra[0] + ra[1] + ra[2] * 3 + ra[3] * 5 + rb[0] * 7 + rb[1] * 11 + rb[2] * 13 + rb[3] * 17 +
                                 rc[0] * 19 + rc[1] * 23 + rc[2] * 29 + rc[3] * 31;
      equal &= got[i * 2 + 1] == of(3)[row] + of(4)[row] * 3;
    }
    CHECK(equal);
  }
  for (std::size_t odd = 0; odd < 5; ++odd) {
    std::uint64_t arrays[5] = {good, good, good, good, good};
    arrays[odd] = 0x1000;
    CHECK(launch(arrays).kind == exec::FaultKind::kIllegalAddress);
    arrays[odd] = good + 2;
    CHECK(launch(arrays).kind == exec::FaultKind::kMisalignedAddress);
  }
}
