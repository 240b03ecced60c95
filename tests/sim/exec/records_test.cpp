// What recorded kernels say of their path and their accesses, against the same thing computed by hand, and against the
// plain run.
#include "sim/exec/contract/records.h"

#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <string>

#include "sim/exec/contract/layout.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

struct Entry {
  RecordHeader header;
  std::vector<std::uint64_t> addresses;  ///< of the lanes of the mask
};

/// Keeps everything, by CTA and warp.
class Collector final : public RecordSink, public RecordStream {
 public:
  RecordStream& Open() override { return *this; }
  void OnRecords(const RecordPlace& place, std::span<const std::uint64_t> words, std::uint32_t ended) override {
    const std::lock_guard lock(mutex_);
    std::uint32_t& warp = warp_.try_emplace({place.cta_index, place.buffer}, place.buffer).first->second;
    RecordReader reader(words, &loops_[{place.cta_index, place.buffer}]);
    while (reader.Next()) {
      Entry entry{reader.header(), {}};
      if (entry.header.kind == RecordKind::kWarpEnd) {
        ++warp;
        --ended;
        continue;
      }
      auto& entries = by_warp[{place.cta_index, warp}];
      if (entry.header.kind != RecordKind::kBlock) {
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
          if (entry.header.mask >> lane & 1) entry.addresses.push_back(reader.addresses()[lane]);
        }
      }
      entries.push_back(std::move(entry));
    }
    CHECK(ended == 0);
  }

  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<Entry>> by_warp;

 private:
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> warp_;  // whose records come next, by CTA and buffer
  std::map<std::pair<std::uint64_t, std::uint32_t>, RecordLoops> loops_;
  std::mutex mutex_;
};

// Thread t of its block goes round tid % 5 times; each round stores at a place that is a hash of thread and round. Even
// threads then add to shared memory. Instruction numbers stand in front.
const std::string kLoops = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry loops(.param .u64 out)
{
  .shared .align 4 .b8 sums[64];
  .reg .b32 %r<12>; .reg .b64 %rd<6>; .reg .pred %p<4>;
  /*  0 */ ld.param.u64 %rd1, [out];
  /*  1 */ mov.u32 %r1, %tid.x;
  /*  2 */ rem.u32 %r2, %r1, 5;
  /*  3 */ mov.u32 %r3, 0;
LOOP:
  /*  4 */ setp.ge.u32 %p1, %r3, %r2;
  /*  5 */ @%p1 bra DONE;
  /*  6 */ mad.lo.u32 %r4, %r1, 7919, %r3;
  /*  7 */ mul.lo.u32 %r5, %r4, 2654435761;
  /*  8 */ shr.u32 %r6, %r5, 20;
  /*  9 */ mul.wide.u32 %rd2, %r6, 4;
  /* 10 */ add.u64 %rd3, %rd1, %rd2;
  /* 11 */ st.global.u32 [%rd3], %r1;
  /* 12 */ add.u32 %r3, %r3, 1;
  /* 13 */ bra.uni LOOP;
DONE:
  /* 14 */ and.b32 %r7, %r1, 1;
  /* 15 */ setp.eq.u32 %p2, %r7, 0;
  /* 16 */ mov.u32 %r8, sums;
  /* 17 */ @%p2 red.shared.add.u32 [%r8+8], 1;
  /* 18 */ mul.wide.u32 %rd4, %r1, 8;
  /* 19 */ add.u64 %rd5, %rd1, %rd4;
  /* 20 */ ld.global.v2.u32 {%r9, %r10}, [%rd5+16384];
  /* 21 */ ret;
}
)";

constexpr std::uint32_t kThreads = 80;  // the third warp is half

std::uint64_t Place(std::uint64_t out, std::uint32_t thread, std::uint32_t round) {
  return out + std::uint64_t{(thread * 7919 + round) * 2654435761u >> 20} * 4;
}

}  // namespace

TEST_CASE("Records_DivergentLoop_TellPathAndAddresses") {
  test::Executor executor;
  const std::uint64_t out = executor.Upload(std::vector<std::uint32_t>(8192, 0));
  Collector collector;
  test::ParamBlock block;
  block.Add(out);
  LaunchParams launch;
  launch.grid = {3, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  launch.records = &collector;
  REQUIRE(executor.Launch(kLoops, "loops", launch).kind == FaultKind::kNone);
  REQUIRE(collector.by_warp.size() == 9);

  for (const auto& [place, entries] : collector.by_warp) {
    INFO("CTA " << place.first << ", warp " << place.second);
    const std::uint32_t first = place.second * 32, lanes = std::min(kThreads - first, 32u);
    const std::uint32_t all = lanes == 32 ? ~0u : (1u << lanes) - 1;
    // What each thread did, put together from the records.
    std::map<std::uint32_t, std::vector<std::uint32_t>> blocks;  // instruction -> visits per lane
    std::vector<std::vector<std::uint64_t>> stores(32), loads(32), atomics(32);
    for (const Entry& entry : entries) {
      REQUIRE((entry.header.mask & ~all) == 0);
      REQUIRE(entry.header.mask != 0);
      std::size_t next = 0;
      for (unsigned lane = 0; lane < 32; ++lane) {
        if ((entry.header.mask >> lane & 1) == 0) continue;
        switch (entry.header.instruction) {
          case 11:
            CHECK((entry.header.access == AccessKind::kWrite && entry.header.bytes == 4 &&
                   entry.header.space == Space::kGlobal));
            stores[lane].push_back(entry.addresses[next++]);
            break;
          case 17:
            CHECK((entry.header.access == AccessKind::kAtomic && entry.header.bytes == 4 &&
                   entry.header.space == Space::kShared));
            atomics[lane].push_back(entry.addresses[next++]);
            break;
          case 20:
            CHECK((entry.header.access == AccessKind::kRead && entry.header.bytes == 8 &&
                   entry.header.kind == RecordKind::kAffine));
            loads[lane].push_back(entry.addresses[next++]);
            break;
          default:
            REQUIRE(entry.header.kind == RecordKind::kBlock);
            auto& visits = blocks[entry.header.instruction];
            visits.resize(32);
            ++visits[lane];
        }
      }
    }
    CHECK(blocks.size() == 4);  // 0, 4, 6, 14
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const std::uint32_t thread = first + lane, rounds = thread % 5;
      std::vector<std::uint64_t> expected;
      for (std::uint32_t round = 0; round < rounds; ++round) expected.push_back(Place(out, thread, round));
      CHECK(stores[lane] == expected);
      CHECK(atomics[lane] == (thread % 2 == 0 ? std::vector<std::uint64_t>{8} : std::vector<std::uint64_t>{}));
      CHECK(loads[lane] == std::vector<std::uint64_t>{out + thread * 8 + 16384});
      CHECK(blocks[0][lane] == 1);
      CHECK(blocks[4][lane] == rounds + 1);
      CHECK(blocks[6][lane] == rounds);
      CHECK(blocks[14][lane] == 1);
    }
  }
}

// Several hundred times as much as a buffer holds, from warps that take turns at a barrier.
TEST_CASE("Records_LongRun_AreAllThereInOrder") {
  const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry turns(.param .u64 in, .param .u32 rounds)
{
  .reg .b32 %r<8>; .reg .b64 %rd<6>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [in];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, 0;
LOOP:
  mad.lo.u32 %r4, %r3, 37, %r2;
  mul.lo.u32 %r5, %r4, %r4;
  and.b32 %r6, %r5, 1023;
  mul.wide.u32 %rd2, %r6, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r7, [%rd3];
  bar.sync 0;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, %r1;
  @%p1 bra LOOP;
  ret;
}
)";
  test::Executor executor;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(1024, 0));
  constexpr std::uint32_t kRounds = 5000;
  Collector collector;
  test::ParamBlock block;
  block.Add(in).Add(kRounds);
  LaunchParams launch;
  launch.grid = {2, 1, 1};
  launch.block = {96, 1, 1};
  launch.params = block.bytes();
  launch.records = &collector;
  REQUIRE(executor.Launch(ptx, "turns", launch).kind == FaultKind::kNone);
  REQUIRE(collector.by_warp.size() == 6);
  for (const auto& [place, entries] : collector.by_warp) {
    std::uint32_t round = 0;
    bool good = true;
    for (const Entry& entry : entries) {
      if (entry.header.kind == RecordKind::kBlock) continue;
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t x = round * 37 + place.second * 32 + lane;
        good &= entry.addresses[lane] == in + (x * x & 1023) * 4;
      }
      ++round;
    }
    CHECK(good);
    CHECK(round == kRounds);
  }
}

TEST_CASE("InstructionNumbers_KernelFirst_ThenFunctions") {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".func twice() { .reg .b32 %o; add.u32 %o, %o, %o; ret; }\n"
      ".entry a() { ret; }\n"
      ".entry b() { .reg .b32 %x; mov.u32 %x, 1; { mov.u32 %x, 2; } bra E; E: ret; }\n",
      sink);
  REQUIRE(!sink.has_errors());
  const ptx::Function& kernel = *module->FindFunction("b");
  const InstructionNumbers numbers = NumberInstructions(*module, kernel);
  CHECK(numbers.instructions.size() == 6);
  CHECK(numbers.first.at(&kernel) == 0);
  CHECK(numbers.first.at(module->FindFunction("twice")) == 4);
  CHECK(numbers.first.size() == 2);
  CHECK(EndsBlock(*numbers.instructions[2]));
  CHECK(!EndsBlock(*numbers.instructions[1]));
}
