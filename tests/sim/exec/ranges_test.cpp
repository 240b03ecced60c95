// What kernels tell of their accesses to global memory: recorded pages against arithmetic, and the reference counts
// that range calls make.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>

#include "sim/exec/ranges/page_recorder.h"
#include "sim/exec/ranges/reference_counts.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr std::uint32_t kPage = 4096;
const std::string kHeader = ".version 8.0\n.target sm_90\n.address_size 64\n";

// out[i] = in[i] for i < n, 256 threads a block; every fourth thread adds to sum[blockIdx.x * 1024], too. The generic
// store to shared memory and the load through .const are no accesses to global memory.
const std::string kCopy = kHeader + R"(
.const .align 4 .u32 one = 1;
.visible .entry copy(.param .u64 in, .param .u64 out, .param .u64 sum, .param .u32 n)
{
  .shared .align 4 .b8 tile[1024];
  .reg .b32 %r<10>; .reg .b64 %rd<12>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u64 %rd3, [sum];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r2, 256, %r3;
  setp.ge.u32 %p1, %r4, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd4, %r4, 4;
  add.u64 %rd5, %rd1, %rd4;
  add.u64 %rd6, %rd2, %rd4;
  ld.global.u32 %r5, [%rd5];
  mov.u64 %rd7, tile;
  cvta.shared.u64 %rd7, %rd7;
  st.u32 [%rd7], %r5;
  st.u32 [%rd6], %r5;
  and.b32 %r6, %r3, 3;
  setp.ne.u32 %p2, %r6, 0;
  ld.const.u32 %r7, [one];
  mul.wide.u32 %rd8, %r2, 4096;
  add.u64 %rd9, %rd3, %rd8;
  @!%p2 red.global.add.u32 [%rd9], %r7;
DONE:
  ret;
}
)";

struct Arrays {
  std::uint64_t in, out, sum;
};

LaunchParams CopyLaunch(test::ParamBlock& block, const Arrays& arrays, std::uint32_t n, std::uint32_t ctas) {
  block.Add(arrays.in).Add(arrays.out).Add(arrays.sum).Add(n);
  LaunchParams launch;
  launch.grid = {ctas, 1, 1};
  launch.block = {256, 1, 1};
  launch.params = block.bytes();
  return launch;
}

}  // namespace

namespace {

using PageFlags = std::map<std::uint64_t, std::uint32_t>;

std::map<std::uint64_t, PageFlags> FlagsByCta(const PageRecorder& recorder) {
  std::map<std::uint64_t, PageFlags> flags;
  for (const auto& [cta, pages] : recorder.Pages()) {
    for (const PageSet::Range& range : pages.ranges()) {
      for (std::uint64_t page = range.first; page <= range.last; ++page)
        CHECK(flags[cta].emplace(page, range.flags).second);
    }
  }
  return flags;
}

}  // namespace

TEST_CASE("Recorder_Copy_SeesThePagesOfEachCta") {
  const std::uint32_t n = 256 * 37 + 100, ctas = 39;  // the last CTA touches nothing
  test::Executor executor;
  const Arrays arrays{executor.Upload(std::vector<std::uint32_t>(n, 7)),
                      executor.Upload(std::vector<std::uint32_t>(n, 0)),
                      executor.Upload(std::vector<std::uint32_t>(1024 * ctas, 0))};
  PageRecorder recorder(kPage);
  test::ParamBlock block;
  LaunchParams launch = CopyLaunch(block, arrays, n, ctas);
  launch.observer = &recorder;
  REQUIRE(executor.Launch(kCopy, "copy", launch).kind == FaultKind::kNone);

  std::map<std::uint64_t, PageFlags> expected;
  for (std::uint32_t i = 0; i < n; ++i) {
    PageFlags& pages = expected[i / 256];
    pages[(arrays.in + i * 4) / kPage] |= kRangeRead;
    pages[(arrays.out + i * 4) / kPage] |= kRangeWrite;
    pages[(arrays.sum + i / 256 * 4096) / kPage] |= kRangeRead | kRangeWrite;
  }
  CHECK(FlagsByCta(recorder) == expected);
  std::vector<std::uint32_t> out(n);
  executor.Download(arrays.out, out);
  CHECK(out == std::vector<std::uint32_t>(n, 7));
}

TEST_CASE("Recorder_LaunchWithoutObserver_IsNotRecorded") {
  test::Executor executor;
  const Arrays arrays{executor.Upload(std::vector<std::uint32_t>(256, 7)),
                      executor.Upload(std::vector<std::uint32_t>(256, 0)),
                      executor.Upload(std::vector<std::uint32_t>(1024, 0))};
  PageRecorder recorder(kPage);
  test::ParamBlock first, second;
  LaunchParams recorded = CopyLaunch(first, arrays, 256, 1), plain = CopyLaunch(second, arrays, 256, 1);
  recorded.observer = &recorder;
  REQUIRE(executor.Launch(kCopy, "copy", recorded).kind == FaultKind::kNone);
  const auto pages = FlagsByCta(recorder);
  CHECK(pages.size() == 1);
  REQUIRE(executor.Launch(kCopy, "copy", plain).kind == FaultKind::kNone);
  CHECK(FlagsByCta(recorder) == pages);
}

TEST_CASE("Recorder_WmmaLoadAndStore_AreAccesses") {
  const std::string ptx = kHeader + R"(
.visible .entry matrix(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<10>; .reg .b64 %rd<3>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r9, 512;
  wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%rd1], %r9;
  wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd2], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, %r9;
  ret;
}
)";
  test::Executor executor;
  const std::uint64_t in = executor.Upload(std::vector<float>(512 * 16, 1.0f)),
                      out = executor.Upload(std::vector<float>(512 * 16, 0.0f));
  PageRecorder recorder(kPage);
  test::ParamBlock block;
  block.Add(in).Add(out);
  LaunchParams launch;
  launch.block = {32, 1, 1};
  launch.params = block.bytes();
  launch.observer = &recorder;
  REQUIRE(executor.Launch(ptx, "matrix", launch).kind == FaultKind::kNone);
  PageFlags expected;
  for (std::uint64_t row = 0; row < 16; ++row) {
    expected[(in + row * 2048) / kPage] |= kRangeRead;
    expected[(out + row * 2048) / kPage] |= kRangeWrite;
  }
  CHECK(FlagsByCta(recorder) == std::map<std::uint64_t, PageFlags>{{0, expected}});
}

namespace {

// Each CTA's first thread calls set, and release when `release` is not 0.
const std::string kRanges = kHeader + R"(
.extern .func gridloom_set_range(.param .u64 array, .param .u64 low, .param .u64 high, .param .u32 flags);
.extern .func gridloom_release_range(.param .u64 array, .param .u64 low, .param .u64 high, .param .u32 flags);
.visible .entry ranges(.param .u64 array, .param .u32 release)
{
  .reg .b32 %r<5>; .reg .b64 %rd<6>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [array];
  ld.param.u32 %r1, [release];
  mov.u32 %r2, %tid.x;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra DONE;
  mov.u32 %r3, %ctaid.x;
  mul.wide.u32 %rd2, %r3, 2048;
  add.u64 %rd3, %rd1, %rd2;
  add.u64 %rd4, %rd3, 2048;
  mov.u32 %r4, 3;
  {
    .param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b32 p3;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd3; st.param.b64 [p2], %rd4; st.param.b32 [p3], %r4;
    call gridloom_set_range, (p0, p1, p2, p3);
  }
  setp.eq.u32 %p2, %r1, 0;
  @%p2 bra DONE;
  {
    .param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b32 p3;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd3; st.param.b64 [p2], %rd4; st.param.b32 [p3], %r4;
    call gridloom_release_range, (p0, p1, p2, p3);
  }
DONE:
  ret;
}
)";

}  // namespace

TEST_CASE("ReferenceCounts_SetThenRelease_GoBackToZero") {
  test::Executor executor;
  const std::uint64_t array = executor.memory().Allocate(10 * kPage, kPage, MemoryKind::kDevice);
  for (const std::uint32_t release : {0u, 1u}) {
    ReferenceCounts counts(executor.memory(), kPage);
    test::ParamBlock block;
    block.Add(array).Add(release);
    LaunchParams launch;
    launch.grid = {30, 1, 1};  // 2 KiB each: the last ten CTAs lie outside of the array
    launch.block = {64, 1, 1};
    launch.params = block.bytes();
    launch.ranges = &counts;
    REQUIRE(executor.Launch(kRanges, "ranges", launch).kind == FaultKind::kNone);
    CHECK(counts.calls() == (release ? 60u : 30u));
    CHECK(counts.SetByCta().size() == 20);
    if (release) {
      CHECK(counts.Counts().empty());
      continue;
    }
    CHECK(counts.Counts().size() == 10);
    for (const auto& [page, count] : counts.Counts()) CHECK(count == ReferenceCounts::Count{2, 2});
  }
}

TEST_CASE("PageSet_RandomRanges_AsOnePageAfterTheOther") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    PageSet set;
    std::map<std::uint64_t, std::uint32_t> pages;
    for (int i = static_cast<int>(random() % 12); i > 0; --i) {
      const std::uint64_t first = random() % 40, last = first + random() % 9;
      const std::uint32_t flags = 1 + random() % 3;
      set.Add({first, last, flags});
      for (std::uint64_t page = first; page <= last; ++page) pages[page] |= flags;
    }
    set.Sort();
    CHECK(set.size() == pages.size());
    for (std::uint64_t page = 0; page < 60; ++page)
      CHECK(set.FlagsOf(page) == (pages.contains(page) ? pages[page] : 0));
    for (std::size_t i = 1; i < set.ranges().size(); ++i) CHECK(set.ranges()[i - 1].last < set.ranges()[i].first);
  }
}

TEST_CASE("CtaPageLog_ManyEntries_AsOneSetPerCta") {
  std::mt19937 random(11);
  CtaPageLog log;
  std::map<std::uint64_t, PageSet> expected;
  for (int i = 0; i < 300'000; ++i) {  // more than are kept before equal ones are merged
    const std::uint64_t cta = random() % 50, first = random() % 100;
    const PageSet::Range range{first, first + random() % 3, 1 + static_cast<std::uint32_t>(random() % 3)};
    if (cta == 49 || first < 2 * cta) continue;
    log.Add(cta, range);
    expected[cta].Add(range);
  }
  const auto sorted = log.Sorted();
  REQUIRE(sorted.size() == expected.size());
  auto it = expected.begin();
  for (const CtaPages& cta : sorted) {
    CHECK(cta.cta == it->first);
    it->second.Sort();
    for (std::uint64_t page = 0; page < 110; ++page) CHECK(cta.pages.FlagsOf(page) == it->second.FlagsOf(page));
    ++it;
  }
}

TEST_CASE("CtaSample_LargeGrid_HasItsEndsAndAllColumns") {
  CHECK(CtaSample::Of({250, 1000, 1}, 250'000).every == 1);
  const Dim3 grid{1024, 1024, 3};
  const CtaSample sample = CtaSample::Of(grid, 250'000);
  std::uint64_t members = 0;
  std::set<std::uint64_t> columns;
  for (std::uint64_t cta = 0; cta < grid.count(); ++cta) {
    if (!sample.Has(cta)) continue;
    ++members;
    columns.insert(cta % grid.x);
  }
  CHECK(sample.Has(0));
  CHECK(sample.Has(grid.count() - 1));
  CHECK(members <= 250'001);
  CHECK(members > 200'000);
  CHECK(columns.size() == grid.x);
}

TEST_CASE("Recorder_Sample_HasThosePagesOnly") {
  const std::uint32_t n = 256 * 37, ctas = 37;
  test::Executor executor;
  const Arrays arrays{executor.Upload(std::vector<std::uint32_t>(n, 7)),
                      executor.Upload(std::vector<std::uint32_t>(n, 0)),
                      executor.Upload(std::vector<std::uint32_t>(1024 * ctas, 0))};
  PageRecorder recorder(kPage, {.every = 5, .last = ctas - 1});
  test::ParamBlock block;
  LaunchParams launch = CopyLaunch(block, arrays, n, ctas);
  launch.observer = &recorder;
  REQUIRE(executor.Launch(kCopy, "copy", launch).kind == FaultKind::kNone);
  std::set<std::uint64_t> seen;
  for (const CtaPages& cta : recorder.Pages()) seen.insert(cta.cta);
  CHECK(seen == std::set<std::uint64_t>{0, 5, 10, 15, 20, 25, 30, 35, 36});
}

TEST_CASE("ReferenceCounts_Strided_CountsPagesOncePerCallAndClips") {
  test::Executor executor;
  const std::uint64_t array = executor.memory().Allocate(64 * kPage, kPage, MemoryKind::kDevice);
  const std::uint64_t first = array / kPage;
  const auto pages = [&](RangeCall call) {
    ReferenceCounts counts(executor.memory(), kPage);
    call.array = array;
    call.flags = kRangeRead;
    counts.OnRange(call);
    std::vector<std::uint64_t> hit;
    for (const auto& [page, count] : counts.Counts()) {
      CHECK(count == ReferenceCounts::Count{1, 0});
      hit.push_back(page - first);
    }
    return hit;
  };
  using Pages = std::vector<std::uint64_t>;
  CHECK(pages({.base = array + 100, .stride = 10 * kPage, .count = 4, .width = 10}) == Pages{0, 10, 20, 30});
  CHECK(pages({.base = array + 4090, .stride = 2 * kPage, .count = 3, .width = 10}) == Pages{0, 1, 2, 3, 4, 5});
  CHECK(pages({.base = array, .stride = 100, .count = 100, .width = 4}) == Pages{0, 1, 2});
  CHECK(pages({.base = array - 5 * kPage, .stride = 2 * kPage, .count = 5, .width = 8}) == Pages{1, 3});
  CHECK(pages({.base = array + 60 * kPage, .stride = 3 * kPage, .count = ~0ull, .width = 1}) == Pages{60, 63});
  CHECK(pages({.base = array + 63 * kPage, .stride = 0, .count = ~0ull, .width = ~0ull}) == Pages{63});
  CHECK(pages({.base = array + 64 * kPage, .stride = 1, .count = 5, .width = 5}).empty());
  CHECK(pages({.base = array, .stride = 1, .count = 0, .width = 5}).empty());
}
