// Memory that a profiler's calls say is written, and bytes that are put back.
#include "sim/exec/ranges/written_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr std::uint64_t kWrittenPage = 4096;

struct Written {
  test::Executor executor;
  DeviceMemory& memory = executor.memory();
  WrittenMemory written{memory};

  std::uint64_t Allocate(std::uint64_t bytes, MemoryKind kind = MemoryKind::kDevice) {
    return memory.Allocate(bytes, kWrittenPage, kind);
  }
  void Say(RangeCall call) {
    if (call.flags == 0) call.flags = kRangeWrite;
    written.OnRange(call);
  }
};

using Ranges = std::vector<ByteRange>;

}  // namespace

TEST_CASE("WrittenMemory_Ranges_ArePagesOfTheAllocation") {
  Written w;
  const std::uint64_t a = w.Allocate(10 * kWrittenPage + 5), b = w.Allocate(kWrittenPage);
  w.Say({.array = a, .base = a + 100, .count = 1, .width = 4});
  CHECK(w.written.Ranges() == Ranges{{a, a + kWrittenPage}});
  w.Say({.array = a, .base = a + 3 * kWrittenPage - 1, .count = 1, .width = 2, .flags = kRangeRead | kRangeWrite});
  CHECK(w.written.Ranges() == Ranges{{a, a + kWrittenPage}, {a + 2 * kWrittenPage, a + 4 * kWrittenPage}});
  w.Say({.array = a,
         .base = a + 10 * kWrittenPage,
         .count = 1,
         .width = 100 * kWrittenPage});                               // the end of the allocation is its own
  w.Say({.array = b, .base = a, .count = 1, .width = kWrittenPage});  // clipped to the allocation that it names
  CHECK(w.written.Ranges() == Ranges{{a, a + kWrittenPage},
                                     {a + 2 * kWrittenPage, a + 4 * kWrittenPage},
                                     {a + 10 * kWrittenPage, a + 10 * kWrittenPage + 5}});
}

TEST_CASE("WrittenMemory_WhatIsNotWritten_IsLeftOut") {
  Written w;
  const std::uint64_t a = w.Allocate(4 * kWrittenPage);
  w.Say({.array = a, .base = a, .count = 1, .width = 4, .flags = kRangeRead});
  w.Say({.op = RangeOp::kRelease, .array = a, .base = a, .count = 1, .width = 4});
  w.Say({.array = a, .base = a, .count = 0, .width = 4});
  w.Say({.array = a, .base = a, .count = 1, .width = 0});
  w.Say({.array = 16, .base = a, .count = 1, .width = 4});  // in no allocation
  CHECK(w.written.Ranges().empty());
  CHECK(!w.written.SharedWithHost());
}

TEST_CASE("WrittenMemory_Pieces_AreThePagesThatTheyTouch") {
  Written w;
  const std::uint64_t a = w.Allocate(64 * kWrittenPage);
  w.Say({.array = a, .base = a + 8, .stride = 16 * kWrittenPage, .count = 3, .width = 4});
  CHECK(w.written.Ranges() == Ranges{{a, a + kWrittenPage},
                                     {a + 16 * kWrittenPage, a + 17 * kWrittenPage},
                                     {a + 32 * kWrittenPage, a + 33 * kWrittenPage}});
  w.Say({.array = a,
         .base = a,
         .stride = 512,
         .count = ~std::uint64_t{0},
         .width = 4});  // leaves no page out, and ends with the allocation
  CHECK(w.written.Ranges() == Ranges{{a, a + 64 * kWrittenPage}});
}

TEST_CASE("WrittenMemory_AnyCalls_HoldWhatTheySay") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    Written w;
    const std::uint64_t pages = 1 + random() % 40, a = w.Allocate(pages * kWrittenPage);
    std::vector<bool> wanted(pages);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t stride = random() % (5 * kWrittenPage), count = 1 + random() % 6,
                          width = 1 + random() % (2 * kWrittenPage);
      const std::uint64_t base = a + random() % (pages * kWrittenPage);
      w.Say({.cta_index = random() % 50, .array = a, .base = base, .stride = stride, .count = count, .width = width});
      for (std::uint64_t piece = 0; piece < count; ++piece) {
        for (std::uint64_t at = (base - a + piece * stride) / kWrittenPage;
             at <= (base - a + piece * stride + width - 1) / kWrittenPage; ++at)
          if (at < pages) wanted[at] = true;
      }
    }
    for (const ByteRange& range : w.written.Ranges()) {
      REQUIRE((range.begin >= a && range.end <= a + pages * kWrittenPage && range.begin < range.end));
      for (std::uint64_t at = (range.begin - a) / kWrittenPage; at < (range.end - a) / kWrittenPage; ++at) {
        CHECK(wanted[at]);
        wanted[at] = false;
      }
    }
    CHECK(std::ranges::none_of(wanted, [](bool one) { return one; }));
  }
}

TEST_CASE("WrittenMemory_HostMemory_IsNamed") {
  for (const MemoryKind kind : {MemoryKind::kManaged, MemoryKind::kPinned}) {
    Written w;
    const std::uint64_t a = w.Allocate(kWrittenPage, kind);
    w.Say({.cta_index = 3, .array = a, .base = a, .count = 1, .width = 4, .flags = kRangeRead});
    CHECK(!w.written.SharedWithHost());
    w.Say({.cta_index = 3, .array = a, .base = a, .count = 1, .width = 4});
    REQUIRE(w.written.SharedWithHost());
    CHECK(w.written.SharedWithHost()->base == a);
  }
}

TEST_CASE("SavedMemory_Restore_PutsBackWhatWasThere") {
  Written w;
  std::mt19937_64 random(7);
  std::vector<std::uint32_t> before(20'000);
  for (std::uint32_t& word : before) word = static_cast<std::uint32_t>(random());
  const std::uint64_t a = w.executor.Upload(before);
  const std::uint64_t high = a + 4 * before.size();
  const Ranges ranges = {{a + 4, a + 40}, {a + 4000, a + 4000}, {a + 8000, high}};
  CHECK(SavedMemory::BytesOf(ranges) == 36 + high - a - 8000);
  const auto saved = SavedMemory::Of(ranges);
  REQUIRE(saved);
  std::fill_n(reinterpret_cast<std::uint32_t*>(a), before.size(), 0);
  saved->Restore();
  std::vector<std::uint32_t> after(before.size());
  w.executor.Download(a, after);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool kept = (i >= 1 && i < 10) || i >= 2000;
    CHECK(after[i] == (kept ? before[i] : 0));
  }
  CHECK(SavedMemory::Of({}));
}
