// Loops over rows of different lengths, in which each lane reads places of its own: what is left of them runs lane by
// lane.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <random>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

// A thread walks its row of `next`, adds up the values found there and stops early at 77. {sum, hash, where it stopped,
// wide}
const char* const kRows = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry rows(.param .u64 starts, .param .u64 next, .param .u64 values, .param .u64 marks, .param .u64 out, .param .u32 n)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<4>; .reg .pred %p<6>; .reg .b16 %h<2>;
  .shared .align 4 .b8 weights[64];
  ld.param.u64 %rd1, [starts]; ld.param.u64 %rd2, [next]; ld.param.u64 %rd3, [values];
  ld.param.u64 %rd4, [marks]; ld.param.u64 %rd5, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  and.b32 %r15, %r4, 15; shl.b32 %r16, %r15, 2; mov.u32 %r17, weights; add.u32 %r17, %r17, %r16;
  st.shared.u32 [%r17], %r15;
  bar.sync 0;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra END;
  mul.wide.u32 %rd6, %r5, 4;
  add.u64 %rd7, %rd1, %rd6;
  ld.global.u32 %r6, [%rd7];
  ld.global.u32 %r7, [%rd7+4];
  mov.f32 %f1, 0f00000000;
  mov.u32 %r8, %r5;
  mov.u64 %rd12, 1;
  setp.ge.s32 %p2, %r6, %r7;
  @%p2 bra DONE;
LOOP:
  mul.wide.s32 %rd8, %r6, 4;
  add.u64 %rd9, %rd2, %rd8;
  ld.global.u32 %r9, [%rd9];
  mul.wide.s32 %rd10, %r9, 4;
  add.u64 %rd11, %rd3, %rd10;
  ld.global.f32 %f2, [%rd11];
  fma.rn.f32 %f1, %f2, 0f3F000000, %f1; rcp.rn.f32 %f3, %f2; add.f32 %f1, %f1, %f3;
  and.b32 %r18, %r9, 3; shl.b32 %r18, %r18, 2; mov.u32 %r19, weights; add.u32 %r19, %r19, %r18;
  ld.shared.u32 %r19, [%r19];
  mad.lo.u32 %r8, %r8, 31, %r9;
  add.u32 %r8, %r8, %r19;
  cvt.u64.u32 %rd13, %r9;
  mad.lo.u64 %rd12, %rd12, 3, %rd13;
  mul.wide.s32 %rd14, %r6, 2;
  add.u64 %rd15, %rd4, %rd14;
  st.global.u16 [%rd15], %r9;
  setp.eq.u32 %p3, %r9, 77;
  @%p3 bra DONE;
  add.s32 %r6, %r6, 1;
  setp.lt.s32 %p4, %r6, %r7;
  @%p4 bra LOOP;
DONE:
  mul.wide.u32 %rd16, %r5, 24;
  add.u64 %rd17, %rd5, %rd16;
  st.global.f32 [%rd17], %f1;
  st.global.u32 [%rd17+4], %r8;
  st.global.u32 [%rd17+8], %r6;
  st.global.u64 [%rd17+16], %rd12;
END:
  ret;
}
)";

// A thread adds up `rounds` rows, one after the other. What lanes wait at behind the inner loop is entered from nowhere
// else, and the number of the round is the same for all of them.
const char* const kRounds = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry rounds(.param .u64 starts, .param .u64 next, .param .u64 values, .param .u64 out, .param .u32 n, .param .u32 rounds)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<6>;
  ld.param.u64 %rd1, [starts]; ld.param.u64 %rd2, [next]; ld.param.u64 %rd3, [values]; ld.param.u64 %rd4, [out];
  ld.param.u32 %r1, [n]; ld.param.u32 %r2, [rounds];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, 0;
  mov.u32 %r5, 1;
ROUND:
  mad.lo.u32 %r6, %r4, %r1, %r3;
  mul.wide.u32 %rd5, %r6, 4;
  add.u64 %rd6, %rd1, %rd5;
  ld.global.u32 %r7, [%rd6];
  ld.global.u32 %r8, [%rd6+4];
  setp.ge.s32 %p1, %r7, %r8;
  @%p1 bra EMPTY;
LOOP:
  mul.wide.s32 %rd8, %r7, 4;
  add.u64 %rd9, %rd2, %rd8;
  ld.global.u32 %r9, [%rd9];
  mul.wide.s32 %rd10, %r9, 4;
  add.u64 %rd11, %rd3, %rd10;
  ld.global.u32 %r10, [%rd11];
  mad.lo.u32 %r5, %r5, 31, %r10;
  add.s32 %r7, %r7, 1;
  setp.lt.s32 %p2, %r7, %r8;
  @%p2 bra LOOP;
  add.u32 %r5, %r5, %r4;
EMPTY:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, %r2;
  @%p3 bra ROUND;
  mul.wide.u32 %rd16, %r3, 4;
  add.u64 %rd17, %rd4, %rd16;
  st.global.u32 [%rd17], %r5;
  ret;
}
)";

// Each round of a thread's loop reads its row's end anew and counts the round, both at places next to those of its
// neighbours.
const char* const kEnds = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry ends(.param .u64 starts, .param .u64 next, .param .u64 values, .param .u64 trips, .param .u64 out, .param .u32 n)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<6>;
  ld.param.u64 %rd1, [starts]; ld.param.u64 %rd2, [next]; ld.param.u64 %rd3, [values];
  ld.param.u64 %rd4, [trips]; ld.param.u64 %rd5, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra END;
  mul.wide.u32 %rd6, %r5, 4;
  add.u64 %rd7, %rd1, %rd6;
  add.u64 %rd8, %rd4, %rd6;
  add.u64 %rd9, %rd5, %rd6;
  ld.global.u32 %r6, [%rd7];
  mov.u32 %r8, 0;
  mov.u32 %r9, 0;
LOOP:
  ld.global.u32 %r7, [%rd7+4];
  setp.ge.s32 %p2, %r6, %r7;
  @%p2 bra DONE;
  mul.wide.s32 %rd10, %r6, 4;
  add.u64 %rd11, %rd2, %rd10;
  ld.global.u32 %r10, [%rd11];
  mul.wide.s32 %rd12, %r10, 4;
  add.u64 %rd13, %rd3, %rd12;
  ld.global.u32 %r11, [%rd13];
  mad.lo.u32 %r8, %r8, 31, %r11;
  add.u32 %r9, %r9, 1;
  st.global.u32 [%rd8], %r9;
  add.s32 %r6, %r6, 1;
  bra LOOP;
DONE:
  st.global.u32 [%rd9], %r8;
END:
  ret;
}
)";

struct Row {
  float sum;
  std::uint32_t hash, stop, unused;
  std::uint64_t wide;
};

struct Rows {
  std::vector<std::int32_t> starts{0}, next;
  std::vector<float> values;
  std::vector<std::uint16_t> marks;
  std::vector<Row> out;

  explicit Rows(std::uint32_t count) {
    std::mt19937 random(11);
    for (std::uint32_t i = 0; i < count; ++i)
      starts.push_back(starts.back() + static_cast<std::int32_t>(random() % 40));
    next.resize(static_cast<std::size_t>(starts.back()) + 1);
    for (std::int32_t& index : next) index = static_cast<std::int32_t>(random() % 300);
    for (int i = 0; i < 300; ++i) values.push_back(static_cast<float>(random() % 1000) / 8);
    marks.resize(next.size());
    out.resize(count);
  }

  /// What the kernel has to give, and how the marks are then.
  std::vector<Row> Expected(std::vector<std::uint16_t>& wanted_marks) const {
    std::vector<Row> rows;
    wanted_marks.assign(marks.size(), 0);
    for (std::uint32_t i = 0; i + 1 < starts.size(); ++i) {
      Row row{0, i, static_cast<std::uint32_t>(starts[i]), 0, 1};
      for (; static_cast<std::int32_t>(row.stop) < starts[i + 1]; ++row.stop) {
        const std::int32_t index = next[row.stop];
        row.sum += values[static_cast<std::size_t>(index)] * 0.5f;  // exact, as the fma's is
        row.sum += 1 / values[static_cast<std::size_t>(index)];
        row.hash = row.hash * 31 + static_cast<std::uint32_t>(index) + (static_cast<std::uint32_t>(index) & 3);
        row.wide = row.wide * 3 + static_cast<std::uint32_t>(index);
        wanted_marks[row.stop] = static_cast<std::uint16_t>(index);
        if (index == 77) break;
      }
      rows.push_back(row);
    }
    return rows;
  }
};

void Check(const Rows& rows, const std::vector<Row>& got, const std::vector<std::uint16_t>& marks) {
  std::vector<std::uint16_t> wanted_marks;
  const std::vector<Row> wanted = rows.Expected(wanted_marks);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO("row " << i);
    CHECK(got[i].sum == wanted[i].sum);
    CHECK(got[i].hash == wanted[i].hash);
    CHECK(got[i].stop == wanted[i].stop);
    CHECK(got[i].wide == wanted[i].wide);
  }
  CHECK(marks == wanted_marks);
}

/// Once for each way to make such loops, whatever this processor gains by (runtime/processor_choices.h).
exec::Engine::Options EachWay() {
  exec::Engine::Options options;
  options.code = GENERATE("fetch-ahead=no,few-lanes=8", "fetch-ahead=yes,few-lanes=16", "fetch-ahead=yes,few-lanes=32");
  return options;
}

}  // namespace

TEST_CASE("LaneLoop_RowsOfDifferentLengths_AreAllWalkedToTheirEnds") {
  const exec::Engine::Options options = EachWay();
  for (const std::uint32_t block : {16u, 32u, 43u, 256u}) {
    Executor executor(options);  // one for each block, so that the kernel is built for it, and once
    for (const std::uint32_t count : {3u, 700u}) {
      Rows rows(count);
      const std::uint64_t out = executor.Upload(rows.out), marks = executor.Upload(rows.marks);
      const exec::LaunchFault fault = executor.Launch(kRows, "rows", {(count + block - 1) / block, 1, 1}, {block, 1, 1},
                                                      ParamBlock()
                                                          .Add(executor.Upload(rows.starts))
                                                          .Add(executor.Upload(rows.next))
                                                          .Add(executor.Upload(rows.values))
                                                          .Add(marks)
                                                          .Add(out)
                                                          .Add(count));
      INFO("block of " << block << ", " << count << " rows: " << fault.text);
      REQUIRE(fault.kind == exec::FaultKind::kNone);
      executor.Download(out, rows.out);
      std::vector<std::uint16_t> got_marks(rows.marks.size());
      executor.Download(marks, got_marks);
      Check(rows, rows.out, got_marks);
    }
  }
}

// Memory outside of the device's range: every access asks the runtime.
TEST_CASE("LaneLoop_InHostMemory_TakesTheSlowPathForItsLane") {
  constexpr std::uint32_t kCount = 700;
  Executor executor(EachWay());
  Rows rows(kCount);
  const auto share = [&](auto& data) {
    REQUIRE(executor.memory().RegisterHost(data.data(), data.size() * sizeof(data[0]), false));
    return reinterpret_cast<std::uint64_t>(data.data());
  };
  const exec::LaunchFault fault = executor.Launch(kRows, "rows", {22, 1, 1}, {32, 1, 1},
                                                  ParamBlock()
                                                      .Add(executor.Upload(rows.starts))
                                                      .Add(share(rows.next))
                                                      .Add(share(rows.values))
                                                      .Add(share(rows.marks))
                                                      .Add(share(rows.out))
                                                      .Add(kCount));
  INFO(fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  Check(rows, rows.out, rows.marks);
}

// The row with `longer` longer ones is the last of its warp but for those when it comes to its end.
TEST_CASE("LaneLoop_BadIndex_IsAFaultOfItsLane") {
  const auto [count, longer] = GENERATE(std::pair{3u, 0u}, std::pair{3u, 1u}, std::pair{12u, 9u}, std::pair{32u, 2u},
                                        std::pair{32u, 9u}, std::pair{32u, 13u}, std::pair{32u, 25u});
  Executor executor(EachWay());
  Rows rows(count);
  std::ranges::replace(rows.next, 77, 76);  // no row ends early
  std::vector<std::size_t> by_length(count);
  std::iota(by_length.begin(), by_length.end(), std::size_t{0});
  std::ranges::stable_sort(by_length, std::greater{},
                           [&](std::size_t row) { return rows.starts[row + 1] - rows.starts[row]; });
  const std::size_t bad = by_length[longer];
  REQUIRE(rows.starts[bad + 1] > rows.starts[bad]);
  rows.next[static_cast<std::size_t>(rows.starts[bad + 1] - 1)] = 0x7000'0000;
  const exec::LaunchFault fault = executor.Launch(kRows, "rows", {1, 1, 1}, {32, 1, 1},
                                                  ParamBlock()
                                                      .Add(executor.Upload(rows.starts))
                                                      .Add(executor.Upload(rows.next))
                                                      .Add(executor.Upload(rows.values))
                                                      .Add(executor.Upload(rows.marks))
                                                      .Add(executor.Upload(rows.out))
                                                      .Add(count));
  INFO(count << " rows, " << longer << " of them longer than the bad one: " << fault.text);
  CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
  CHECK(fault.text.find("thread (" + std::to_string(bad) + ",0,0), PTX line 32") != std::string::npos);
}

TEST_CASE("LaneLoop_PlacesBesideThoseOfNeighbours_AreOfItsLane") {
  constexpr std::uint32_t kCount = 700;
  const bool host = GENERATE(false, true);  // host memory: every access to it asks the runtime
  const std::uint32_t block = GENERATE(16u, 32u, 43u);
  Executor executor(EachWay());
  Rows rows(kCount);
  std::vector<std::uint32_t> values, trips(kCount), hashes(kCount);
  for (std::uint32_t i = 0; i < 300; ++i) values.push_back(i * i + 3);
  if (host) REQUIRE(executor.memory().RegisterHost(trips.data(), trips.size() * 4, false));
  if (host) REQUIRE(executor.memory().RegisterHost(rows.starts.data(), rows.starts.size() * 4, false));
  const std::uint64_t starts_at =
      host ? reinterpret_cast<std::uint64_t>(rows.starts.data()) : executor.Upload(rows.starts);
  const std::uint64_t trips_at = host ? reinterpret_cast<std::uint64_t>(trips.data()) : executor.Upload(trips);
  const std::uint64_t out = executor.Upload(hashes);
  const exec::LaunchFault fault = executor.Launch(kEnds, "ends", {(kCount + block - 1) / block, 1, 1}, {block, 1, 1},
                                                  ParamBlock()
                                                      .Add(starts_at)
                                                      .Add(executor.Upload(rows.next))
                                                      .Add(executor.Upload(values))
                                                      .Add(trips_at)
                                                      .Add(out)
                                                      .Add(kCount));
  INFO("block of " << block << ", host memory " << host << ": " << fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(out, hashes);
  if (!host) executor.Download(trips_at, trips);
  for (std::uint32_t row = 0; row < kCount; ++row) {
    std::uint32_t hash = 0;
    for (std::int32_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
      hash = hash * 31 + values[static_cast<std::size_t>(rows.next[static_cast<std::size_t>(i)])];
    }
    INFO("row " << row);
    CHECK(hashes[row] == hash);
    CHECK(trips[row] == static_cast<std::uint32_t>(rows.starts[row + 1] - rows.starts[row]));
  }
}

TEST_CASE("LaneLoop_InARoundOfALoop_LanesThatLeftEarlierComeAlong") {
  constexpr std::uint32_t kThreads = 32, kRoundCount = 9;
  Executor executor(EachWay());
  const Rows rows(kThreads * kRoundCount);
  std::vector<std::uint32_t> values, got(kThreads);
  for (std::uint32_t i = 0; i < 300; ++i) values.push_back(i * i + 3);
  const std::uint64_t out = executor.Upload(got);
  const exec::LaunchFault fault = executor.Launch(kRounds, "rounds", {1, 1, 1}, {kThreads, 1, 1},
                                                  ParamBlock()
                                                      .Add(executor.Upload(rows.starts))
                                                      .Add(executor.Upload(rows.next))
                                                      .Add(executor.Upload(values))
                                                      .Add(out)
                                                      .Add(kThreads)
                                                      .Add(kRoundCount));
  INFO(fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(out, got);
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    std::uint32_t hash = 1;
    for (std::uint32_t round = 0; round < kRoundCount; ++round) {
      const std::size_t row = round * kThreads + thread;
      for (auto i = static_cast<std::size_t>(rows.starts[row]); i < static_cast<std::size_t>(rows.starts[row + 1]);
           ++i) {
        hash = hash * 31 + values[static_cast<std::size_t>(rows.next[i])];
      }
      if (rows.starts[row] < rows.starts[row + 1]) hash += round;
    }
    INFO("thread " << thread);
    CHECK(got[thread] == hash);
  }
}
