// Events in traces: what instructions did besides accesses, with warp, block visit, instruction and lane.
#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "sim/exec/grid_children.h"
#include "sim/exec/ranges/range_pieces.h"
#include "tests/sim/trace/captured.h"

namespace gridloom {
namespace {

using test::Captured;
using test::Run;
using trace::CtaEvent;
using trace::EventKind;

const std::string kHeader = R"(.version 8.0
.target sm_90
.address_size 64
.extern .func gridloom_set_range(.param .u64 array, .param .u64 low, .param .u64 high, .param .u32 flags);
.extern .func gridloom_release_strided(.param .u64 array, .param .u64 base, .param .u64 stride, .param .u64 count, .param .u64 width,
                                       .param .u32 flags);
)";

/// Remembers all calls, by their first byte: which thread made them.
class Calls final : public exec::RangeSink {
 public:
  void OnRange(const exec::RangeCall& call) override {
    const std::lock_guard lock(mutex_);
    by_base_[call.base].push_back(call);
  }
  const std::map<std::uint64_t, std::vector<exec::RangeCall>>& by_base() const { return by_base_; }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::vector<exec::RangeCall>> by_base_;
};

/// The line of the text in which something stands first.
std::uint32_t LineOf(const std::string& text, const std::string& what) {
  return static_cast<std::uint32_t>(
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(what)), '\n'));
}

// Thread t goes 1 + t % 4 times through a loop that loads, has odd threads set their word, and stores; then it calls a
// function, in which all threads release rows of words.
const std::string kBoth = kHeader + R"(
.func released(.param .b64 at, .param .b32 rows)
{
  .reg .b64 %rd<6>; .reg .b32 %r<3>;
  ld.param.b64 %rd1, [at];
  ld.param.b32 %r1, [rows];
  cvt.u64.u32 %rd2, %r1;
  mov.u64 %rd3, 1024;
  mov.u64 %rd4, 4;
  mov.u32 %r2, 2;
  {
    .param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b64 p3; .param .b64 p4; .param .b32 p5;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd1; st.param.b64 [p2], %rd3; st.param.b64 [p3], %rd2; st.param.b64 [p4], %rd4;
    st.param.b32 [p5], %r2;
    call gridloom_release_strided, (p0, p1, p2, p3, p4, p5);
  }
  ret;
}
.visible .entry both(.param .u64 array)
{
  .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [array];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 1024, %r1;
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd3, %rd1, %rd2;
  add.u64 %rd4, %rd3, 4;
  and.b32 %r4, %r1, 3;
  and.b32 %r5, %r1, 1;
  setp.eq.u32 %p1, %r5, 1;
  mov.u32 %r6, 1;
AGAIN:
  ld.global.u32 %r7, [%rd3];
  {
    .param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b32 p3;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd3; st.param.b64 [p2], %rd4; st.param.b32 [p3], %r6;
    @%p1 call gridloom_set_range, (p0, p1, p2, p3);
  }
  add.u32 %r7, %r7, 1;
  st.global.u32 [%rd3], %r7;
  setp.ne.u32 %p2, %r4, 0;
  sub.u32 %r4, %r4, 1;
  @%p2 bra AGAIN;
  and.b32 %r8, %r1, 7;
  {
    .param .b64 q0; .param .b32 q1;
    st.param.b64 [q0], %rd3; st.param.b32 [q1], %r8;
    call released, (q0, q1);
  }
  ret;
}
)";

/// The visit is as many-eth of its block by that lane as the event is of its instruction.
void CheckVisit(const trace::KernelCode& code, const trace::CtaTrace& cta, const CtaEvent& event, std::size_t before) {
  const trace::WarpTrace& warp = cta.warps[event.warp];
  std::size_t visits = 0;
  for (std::uint32_t v = 0; v < event.visit; ++v) {
    const trace::BlockVisit& visit = cta.visits[warp.first_visit + v];
    const trace::BasicBlock& block = code.blocks[visit.block];
    visits += event.instruction - block.first < block.count && (visit.mask & event.lanes) != 0;
  }
  CHECK(visits == before);
}

TEST_CASE("Capture_RangeCalls_AreEventsWhereTheyWereMade") {
  test::Executor executor;
  constexpr std::uint32_t kCtas = 5, kThreads = 96, kRow = 1024;
  const std::uint64_t array = executor.Upload(std::vector<std::uint32_t>(kCtas * kRow + 4 * kRow, 0));
  test::ParamBlock block;
  block.Add(array);
  exec::LaunchParams launch;
  launch.grid = {kCtas, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  Calls calls;
  launch.ranges = &calls;
  const Captured captured = Run(executor, kBoth, "both", launch);
  CHECK(captured.dropped == 0);
  const std::uint32_t set_line = LineOf(kBoth, "call gridloom_set_range"),
                      release_line = LineOf(kBoth, "call gridloom_release_strided");
  std::map<std::uint64_t, std::vector<const CtaEvent*>> by_base;
  for (const auto& [number, cta] : captured.ctas) {
    std::map<std::array<std::uint32_t, 3>, std::size_t> before;
    for (const CtaEvent& event : cta.events) {
      REQUIRE(std::has_single_bit(event.lanes));
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(event.lanes));
      CHECK(event.data[0] == array + 4 * (number * kRow + event.warp * 32 + lane));
      CHECK(captured.table.code.instructions[event.instruction].line ==
            (event.kind == EventKind::kSetRange ? set_line : release_line));
      CheckVisit(captured.table.code, cta, event, before[{event.warp, event.instruction, lane}]++);
      by_base[event.data[0]].push_back(&event);
    }
  }
  CHECK(calls.by_base().size() == kCtas * kThreads);
  for (const auto& [base, made] : calls.by_base()) {
    // Rows of no words are no event: those of every eighth thread.
    std::vector<exec::RangeCall> told;
    std::ranges::copy_if(made, std::back_inserter(told), [](const exec::RangeCall& call) { return call.count != 0; });
    const auto& got = by_base[base];
    REQUIRE(got.size() == told.size());
    for (std::size_t i = 0; i < told.size(); ++i) {
      CHECK((got[i]->warp == told[i].warp && got[i]->lanes == 1u << told[i].lane));
      CHECK(got[i]->kind == (told[i].op == exec::RangeOp::kSet ? EventKind::kSetRange : EventKind::kReleaseRange));
      CHECK(got[i]->flags == told[i].flags);
      const std::uint64_t stride = told[i].count == 1 ? 0 : told[i].stride;
      CHECK(got[i]->data == std::array<std::uint64_t, 4>{base, told[i].width, stride, told[i].count});
    }
  }
}

// The first thread of each CTA releases `bytes` of the array, from CTA number * `step` on; all threads copy a word.
const std::string kRelease = kHeader + R"(
.extern .func gridloom_release_range(.param .u64 array, .param .u64 low, .param .u64 high, .param .u32 flags);
.visible .entry release(.param .u64 array, .param .u64 out, .param .u64 step, .param .u64 bytes)
{
  .reg .b32 %r<8>; .reg .b64 %rd<14>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [array];
  ld.param.u64 %rd2, [out];
  ld.param.u64 %rd3, [step];
  ld.param.u64 %rd4, [bytes];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 64, %r1;
  mul.wide.u32 %rd5, %r3, 4;
  add.u64 %rd6, %rd1, %rd5;
  add.u64 %rd7, %rd2, %rd5;
  ld.global.u32 %r4, [%rd6];
  st.global.u32 [%rd7], %r4;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  cvt.u64.u32 %rd8, %r2;
  mad.lo.u64 %rd9, %rd8, %rd3, %rd1;
  add.u64 %rd10, %rd9, %rd4;
  mov.u32 %r5, 1;
  {
    .param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b32 p3;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd9; st.param.b64 [p2], %rd10; st.param.b32 [p3], %r5;
    call gridloom_release_range, (p0, p1, p2, p3);
  }
DONE:
  ret;
}
)";

TEST_CASE("Capture_CtasWithTheSameEvents_ShareATrace") {
  constexpr std::uint32_t kCtas = 60, kBytes = kCtas * 256;
  for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{256}}) {
    exec::Engine::Options options;
    options.threads = 1;
    test::Executor executor(options);
    const std::uint64_t array = executor.Upload(std::vector<std::uint32_t>(kBytes / 4, 1)),
                        out = executor.Upload(std::vector<std::uint32_t>(kBytes / 4, 0));
    test::ParamBlock block;
    block.Add(array).Add(out).Add(step).Add(std::uint64_t{512});
    exec::LaunchParams launch;
    launch.grid = {kCtas, 1, 1};
    launch.block = {64, 1, 1};
    launch.params = block.bytes();
    const Captured captured = Run(executor, kRelease, "release", launch);
    if (step == 0) CHECK(captured.shared > kCtas / 2);
    for (const auto& [number, cta] : captured.ctas) {
      REQUIRE(cta.events.size() == 1);
      const CtaEvent& event = cta.events.front();
      // The last one's range ends with the array.
      const std::uint64_t low = array + number * step, width = std::min<std::uint64_t>(512, array + kBytes - low);
      CHECK(event.data == std::array<std::uint64_t, 4>{low, width, 0, 1});
      CHECK((event.warp == 0 && event.lanes == 1 && event.flags == trace::kRangeRead));
    }
  }
}

TEST_CASE("ClipRange_LeavesThePiecesThatTouchTheAllocation") {
  const auto clip = [](std::uint64_t base, std::uint64_t width, std::uint64_t stride, std::uint64_t count) {
    const exec::RangePieces pieces =
        exec::ClipRange({.base = base, .stride = stride, .count = count, .width = width}, 1000, 2000);
    return std::array<std::uint64_t, 4>{pieces.base, pieces.width, pieces.stride, pieces.count};
  };
  using Pieces = std::array<std::uint64_t, 4>;
  const Pieces none{};
  CHECK(clip(900, 200, 0, 1) == Pieces{1000, 100, 0, 1});
  CHECK(clip(1900, ~std::uint64_t{0} - 1900, 0, 1) == Pieces{1900, 100, 0, 1});
  CHECK(clip(500, 500, 0, 1) == none);
  CHECK(clip(2000, 5, 0, 1) == none);
  CHECK(clip(1200, 0, 8, 5) == none);
  CHECK(clip(1200, 5, 8, 0) == none);
  CHECK(clip(1100, 8, 8, 10) == Pieces{1100, 80, 0, 1});
  CHECK(clip(0, 10, 100, 100) == Pieces{1000, 10, 100, 10});
  CHECK(clip(0, 1, 100, ~std::uint64_t{0}) == Pieces{1000, 1, 100, 10});
  CHECK(clip(995, 10, 1000, 2) == Pieces{995, 10, 1000, 2});
  CHECK(clip(990, 10, 1010, 2) == none);
  CHECK(clip(~std::uint64_t{0} - 5, 10, 1000, 3) == none);
}

TEST_CASE("CutRange_LeavesNothingOutsideTheAllocation") {
  // Beside a byte by byte count, over all small rows of pieces that may stick out at either end or at both.
  constexpr std::uint64_t kLow = 40, kHigh = 60, kMost = 120;
  for (std::uint64_t base = 20; base < 64; ++base) {
    for (std::uint64_t width = 0; width < 26; ++width) {
      for (std::uint64_t stride = 0; stride < 30; ++stride) {
        for (std::uint64_t count = 0; count < 4; ++count) {
          std::array<bool, kMost * 2> named{}, cut{};
          for (std::uint64_t i = 0; i < count; ++i) {
            for (std::uint64_t at = base + i * stride; at < base + i * stride + width; ++at)
              named[at] = at >= kLow && at < kHigh;
          }
          bool outside = false;
          for (const exec::RangePieces& row :
               exec::CutRange({.base = base, .stride = stride, .count = count, .width = width}, kLow, kHigh)) {
            for (std::uint64_t i = 0; i < row.count; ++i) {
              const std::uint64_t begin = row.base + i * row.stride;
              outside = outside || begin < kLow || begin + row.width > kHigh;
              for (std::uint64_t at = begin; at < begin + row.width; ++at) cut.at(at) = true;
            }
          }
          if (outside || cut != named) FAIL(base << " " << width << " " << stride << " " << count);
        }
      }
    }
  }
  // Pieces whose ends are near, or beyond, the last address.
  const auto far = exec::CutRange(
      {.base = 30, .stride = ~std::uint64_t{0}, .count = 3, .width = ~std::uint64_t{0} - 30}, kLow, kHigh);
  CHECK((far[0].base == kLow && far[0].width == kHigh - kLow && far[0].count == 1 && far[1].count == 0 &&
         far[2].count == 0));
}

/// Numbers launches as they come and runs none.
class Counter final : public exec::GridChildren {
 public:
  exec::DeviceStatus Launch(const exec::LaunchParams& launch, std::uint64_t cta, std::uint64_t stream,
                            std::uint64_t& number) override {
    const std::lock_guard lock(mutex_);
    number = 100 + launches_.size();
    launches_.push_back({cta, launch.grid.count(), stream});
    return exec::DeviceStatus::kSuccess;
  }
  bool Idle(std::uint64_t) override { return true; }
  void BeginWait() override {}
  void EndWait() override {}
  exec::DeviceStatus CreateStream(std::uint64_t*) override { return exec::DeviceStatus::kInvalidValue; }
  exec::DeviceStatus DestroyStream(std::uint64_t) override { return exec::DeviceStatus::kInvalidValue; }
  exec::DeviceStatus CreateEvent(std::uint64_t*) override { return exec::DeviceStatus::kInvalidValue; }
  exec::DeviceStatus DestroyEvent(std::uint64_t) override { return exec::DeviceStatus::kInvalidValue; }
  exec::DeviceStatus RecordEvent(std::uint64_t, std::uint64_t, std::uint64_t) override {
    return exec::DeviceStatus::kInvalidValue;
  }
  exec::DeviceStatus WaitEvent(std::uint64_t, std::uint64_t, std::uint64_t) override {
    return exec::DeviceStatus::kInvalidValue;
  }
  bool SetConditional(std::uint64_t, std::uint32_t) override { return false; }
  exec::DeviceStatus Attribute(int, int, int*) override { return exec::DeviceStatus::kInvalidValue; }
  exec::DeviceStatus Limit(unsigned, std::uint64_t*) override { return exec::DeviceStatus::kUnsupportedLimit; }

  /// CTA that launched, CTAs launched, stream.
  const std::vector<std::array<std::uint64_t, 3>>& launches() const { return launches_; }

 private:
  std::mutex mutex_;
  std::vector<std::array<std::uint64_t, 3>> launches_;
};

// Every sixteenth thread t launches t / 16 + 1 CTAs of 64 threads: the first one as a tail launch, the last one at
// once.
const std::string kLaunches = R"(.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b64 out) __cuda_syscall_cnpv2GetParameterBufferV2(.param .b64 kernel, .param .align 4 .b8 grid[12],
                                                                          .param .align 4 .b8 block[12], .param .b32 shared);
.extern .func (.param .b32 out) __cuda_syscall_cnpv2LaunchDeviceV2(.param .b64 buffer, .param .b64 stream);
.visible .entry child(.param .u64 a, .param .u32 b) { ret; }
.visible .entry parent(.param .u64 out)
{
  .reg .b32 %r<10>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 15;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra DONE;
  shr.u32 %r3, %r1, 4;
  add.u32 %r4, %r3, 1;
  mov.u32 %r5, 1;
  mov.u32 %r6, 64;
  mov.u32 %r7, 0;
  mov.u64 %rd1, child;
  {
    .param .b64 p0; .param .align 4 .b8 p1[12]; .param .align 4 .b8 p2[12]; .param .b32 p3; .param .b64 got;
    st.param.b64 [p0], %rd1;
    st.param.b32 [p1], %r4; st.param.b32 [p1+4], %r5; st.param.b32 [p1+8], %r5;
    st.param.b32 [p2], %r6; st.param.b32 [p2+4], %r5; st.param.b32 [p2+8], %r5;
    st.param.b32 [p3], %r7;
    call (got), __cuda_syscall_cnpv2GetParameterBufferV2, (p0, p1, p2, p3);
    ld.param.b64 %rd2, [got];
  }
  setp.eq.u32 %p2, %r1, 0;
  setp.eq.u32 %p3, %r1, 80;
  selp.b64 %rd3, 3, 0, %p2;
  selp.b64 %rd3, 4, %rd3, %p3;
  {
    .param .b64 p0; .param .b64 p1; .param .b32 got;
    st.param.b64 [p0], %rd2; st.param.b64 [p1], %rd3;
    call (got), __cuda_syscall_cnpv2LaunchDeviceV2, (p0, p1);
    ld.param.b32 %r8, [got];
  }
DONE:
  ret;
}
)";

TEST_CASE("Capture_DeviceLaunches_AreEventsWithTheNumberOfTheLaunch") {
  constexpr std::uint32_t kCtas = 7, kThreads = 96;
  test::Executor executor;
  test::ParamBlock block;
  block.Add(std::uint64_t{0});
  exec::LaunchParams launch;
  launch.grid = {kCtas, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  Counter children;
  launch.children = &children;
  const Captured captured = Run(executor, kLaunches, "parent", launch);
  CHECK(captured.dropped == 0);
  REQUIRE(children.launches().size() == kCtas * kThreads / 16);
  std::vector<bool> seen(children.launches().size());
  for (const auto& [number, cta] : captured.ctas) {
    REQUIRE(cta.events.size() == kThreads / 16);
    for (std::size_t i = 0; i < cta.events.size(); ++i) {
      const CtaEvent& event = cta.events[i];
      CHECK(event.kind == EventKind::kDeviceLaunch);
      CHECK((event.warp == i / 2 && event.lanes == (i % 2 == 0 ? 1u : 1u << 16)));
      const auto& made = children.launches().at(event.data[0] - 100);
      CHECK(made == std::array<std::uint64_t, 3>{number, i + 1, i == 0 ? 3u : i == 5 ? 4u : 0u});
      CHECK((event.data[1] == i + 1 && event.data[2] == 64 && event.data[3] == 12));
      CHECK(event.flags == (i == 0 ? trace::kTailLaunch : i == 5 ? trace::kFireAndForget : trace::kDefaultStream));
      CHECK(!seen[event.data[0] - 100]);
      seen[event.data[0] - 100] = true;
    }
  }
}

// Thread t launches a group of t + 1 CTAs of 64 threads: the first half by a buffer that says so, the others by name
// and shape.
const std::string kGroups = R"(.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b64 out) __cuda_syscall_cnpv2GetParameterBuffer(.param .b32 align, .param .b32 bytes);
.extern .func (.param .b64 out) __cuda_syscall_cnpv2GetParameterBufferV2(.param .b64 kernel, .param .align 4 .b8 grid[12],
                                                                          .param .align 4 .b8 block[12], .param .b32 shared);
.extern .func (.param .b32 out) cudaLaunchAggGroupV2(.param .b64 buffer);
.weak .func (.param .b32 out) cudaLaunchAggGroup(.param .b64 kernel, .param .b64 buffer, .param .align 4 .b8 grid[12],
                                                 .param .align 4 .b8 block[12], .param .b32 shared)
{
  st.param.b32 [out], 999;
  ret;
}
.visible .entry child(.param .u64 a, .param .u32 b) { ret; }
.visible .entry parent(.param .u64 out)
{
  .reg .b32 %r<10>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  ld.param.u64 %rd4, [out];
  mov.u32 %r1, %tid.x;
  add.u32 %r4, %r1, 1;
  mov.u64 %rd1, child;
  setp.ge.u32 %p1, %r1, 16;
  @%p1 bra NAMED;
  {
    .param .b64 p0; .param .align 4 .b8 p1[12]; .param .align 4 .b8 p2[12]; .param .b32 p3; .param .b64 got;
    st.param.b64 [p0], %rd1;
    st.param.b32 [p1], %r4; st.param.b32 [p1+4], 1; st.param.b32 [p1+8], 1;
    st.param.b32 [p2], 64; st.param.b32 [p2+4], 1; st.param.b32 [p2+8], 1;
    st.param.b32 [p3], 0;
    call (got), __cuda_syscall_cnpv2GetParameterBufferV2, (p0, p1, p2, p3);
    ld.param.b64 %rd2, [got];
  }
  {
    .param .b64 p0; .param .b32 got;
    st.param.b64 [p0], %rd2;
    call (got), cudaLaunchAggGroupV2, (p0);
    ld.param.b32 %r8, [got];
  }
  bra DONE;
NAMED:
  {
    .param .b32 p0; .param .b32 p1; .param .b64 got;
    st.param.b32 [p0], 8; st.param.b32 [p1], 12;
    call (got), __cuda_syscall_cnpv2GetParameterBuffer, (p0, p1);
    ld.param.b64 %rd2, [got];
  }
  {
    .param .b64 p0; .param .b64 p1; .param .align 4 .b8 p2[12]; .param .align 4 .b8 p3[12]; .param .b32 p4; .param .b32 got;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2;
    st.param.b32 [p2], %r4; st.param.b32 [p2+4], 1; st.param.b32 [p2+8], 1;
    st.param.b32 [p3], 64; st.param.b32 [p3+4], 1; st.param.b32 [p3+8], 1;
    st.param.b32 [p4], 0;
    call (got), cudaLaunchAggGroup, (p0, p1, p2, p3, p4);
    ld.param.b32 %r8, [got];
  }
DONE:
  setp.eq.u32 %p2, %r8, 0;
  @%p2 ret;
  trap;
}
)";

TEST_CASE("Capture_AggregatedGroups_AreForgottenAndMarked") {
  constexpr std::uint32_t kCtas = 3, kThreads = 32;
  test::Executor executor;
  test::ParamBlock block;
  block.Add(std::uint64_t{0});
  exec::LaunchParams launch;
  launch.grid = {kCtas, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  Counter children;
  launch.children = &children;
  const Captured captured = Run(executor, kGroups, "parent", launch);
  REQUIRE(children.launches().size() == kCtas * kThreads);
  for (const auto& [number, cta] : captured.ctas) {
    REQUIRE(cta.events.size() == kThreads);
    std::uint32_t lanes = 0;
    for (const CtaEvent& event : cta.events) {
      CHECK((event.kind == EventKind::kDeviceLaunch && std::has_single_bit(event.lanes)));
      lanes |= event.lanes;
      const auto lane = static_cast<std::uint64_t>(std::countr_zero(event.lanes));
      CHECK(event.flags == (trace::kFireAndForget | trace::kAggregated));
      CHECK((event.data[1] == lane + 1 && event.data[2] == 64 && event.data[3] == 12));
      CHECK(children.launches().at(event.data[0] - 100) ==
            std::array<std::uint64_t, 3>{number, lane + 1, exec::GridChildren::kFireAndForget});
    }
    CHECK(lanes == 0xffff'ffff);
  }
}

}  // namespace
}  // namespace gridloom
