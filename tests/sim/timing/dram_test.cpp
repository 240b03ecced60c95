// A DRAM channel at exact command cycles: each timing parameter holds a command back until its cycle and no longer.
#include <catch2/catch.hpp>
#include <random>

#include "sim/timing/memory/dram_channel.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

/// The parameters of the CRCS paper, Table 1, and of the GTX 480 where it has none.
sim::TimingSpec::Dram PaperDram() { return TestDevice("crcs").timing.dram; }

TEST_CASE("DramTiming_EachParameter_IsExact") {
  const sim::TimingSpec::Dram spec = PaperDram();
  DramTiming timing(spec);
  timing.Activate(100, 0, 7);
  CHECK(timing.open_row(0) == 7);
  CHECK(timing.ColumnAt(0, false) == 100 + spec.tRCD);
  CHECK(timing.RowAt(0) == 100 + spec.tRAS);
  CHECK(timing.RowAt(1) == 100 + spec.tRRD);
  timing.Activate(106, 4, 9);   // of the same group as bank 0
  timing.Activate(112, 1, 11);  // of another
  const Cycle read = 130;
  CHECK(timing.Column(read, 0, false, 1) == read + spec.tCCD + spec.tCL);
  CHECK(timing.ColumnAt(1, false) == read + spec.tCCD);
  CHECK(timing.ColumnAt(4, false) == read + spec.tCCDL);
  CHECK(timing.ColumnAt(1, true) == read + spec.tCCD + spec.tCL + 2 - spec.tWL);
  CHECK(timing.RowAt(0) == read + spec.tRTP);
  const Cycle write = 150, written = write + spec.tCCD + spec.tWL;
  CHECK(timing.Column(write, 1, true, 1) == written);
  CHECK(timing.ColumnAt(0, false) == written + spec.tCDLR);
  CHECK(timing.RowAt(1) == written + spec.tWR);
  timing.Precharge(200, 1);
  CHECK(timing.open_row(1) == DramTiming::kClosed);
  CHECK(timing.RowAt(1) == 200 + spec.tRP);
  timing.Activate(212, 1, 3);
  timing.Precharge(240, 1);
  CHECK(timing.RowAt(1) == 212 + std::max(spec.tRC, spec.tRAS + spec.tRP));
}

TEST_CASE("DramChannel_ReadOfAClosedBank_ActivatesThenReads") {
  const sim::TimingSpec::Dram spec = PaperDram();
  for (const bool plain : {false, true}) {
    MemoryCounters counters;
    const Ports ports;
    DramChannel channel(spec, 0, ports, plain, counters);
    std::vector<DramData> data;
    channel.Add(10, 3, 5, 2, false, 42);
    CHECK(channel.next() == 10);
    for (Cycle cycle = 10; cycle < 10 + spec.tRCD; ++cycle) channel.Step(cycle, data);
    CHECK(data.empty());
    channel.Step(10 + spec.tRCD, data);
    REQUIRE(data.size() == 1);
    CHECK(data[0].tag == 42);
    CHECK(data[0].at == 10 + spec.tRCD + 2 * spec.tCCD + spec.tCL);
    CHECK(channel.next() == kNever);
    CHECK(counters.dram_activations == 1);
    CHECK(counters.dram_read_bytes == 2 * spec.access_bytes);
  }
}

TEST_CASE("DramChannel_RowHits_GoBeforeOlderRequestsOfOtherRows") {
  const sim::TimingSpec::Dram spec = PaperDram();
  MemoryCounters counters;
  const Ports ports;
  DramChannel channel(spec, 0, ports, false, counters);
  std::vector<DramData> data;
  channel.Add(0, 0, 1, 1, false, 1);
  channel.Add(0, 0, 2, 1, false, 2);  // another row, older than the next
  channel.Add(0, 0, 1, 1, false, 3);
  while (channel.next() != kNever) channel.Step(channel.next(), data);
  REQUIRE(data.size() == 3);
  CHECK(data[0].tag == 1);
  CHECK(data[1].tag == 3);
  CHECK(data[2].tag == 2);
  CHECK(counters.dram_activations == 2);
  CHECK(counters.dram_precharges == 1);
}

/// Gives a channel and its reference the same requests; `busy`: one in so many cycles brings one.
void CompareWithPlain(const sim::TimingSpec::Dram& spec, std::uint64_t seed, Cycle cycles, std::uint32_t banks,
                      std::uint32_t busy) {
  MemoryCounters a_counters, b_counters;
  const Ports ports;
  DramChannel a(spec, 0, ports, false, a_counters), b(spec, 0, ports, true, b_counters);
  std::vector<DramData> a_data, b_data;
  std::mt19937_64 random(seed);
  std::uint32_t tag = 0;
  for (Cycle cycle = 0; cycle < cycles; ++cycle) {
    if (random() % busy == 0 && a.room() > 0) {
      const auto bank = static_cast<std::uint32_t>(random() % banks),
                 row = static_cast<std::uint32_t>(random() % 3 * 32);
      const auto bursts = static_cast<std::uint32_t>(1 + random() % 2);
      const bool writes = random() % 3 == 0;
      a.Add(cycle, bank, row, bursts, writes, tag);
      b.Add(cycle, bank, row, bursts, writes, tag++);
    }
    if (a.next() <= cycle) a.Step(cycle, a_data);
    b.Step(cycle, b_data);
    REQUIRE(a.room() == b.room());
    REQUIRE(a_data.size() == b_data.size());
    if (!a_data.empty()) REQUIRE((a_data.back().at == b_data.back().at && a_data.back().tag == b_data.back().tag));
  }
  CHECK(a_counters == b_counters);
}

TEST_CASE("DramQueue_RandomRequests_IndexedAndPlainGiveTheSameCommands") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) CompareWithPlain(PaperDram(), seed, 4000, seed % 2 == 0 ? 16 : 3, 4);
}

TEST_CASE("DramQueue_OtherNumbersOfBanks_IndexedAndPlainGiveTheSameCommands") {
  sim::TimingSpec::Dram spec = PaperDram();
  for (const std::uint32_t banks : {4, 8, 32, 64}) {
    spec.banks = banks;
    spec.bank_groups = 4;
    CompareWithPlain(spec, banks, 8000, banks, 3);
  }
}

TEST_CASE("DramQueue_LongestTimesOfDeviceFiles_IndexedAndPlainGiveTheSameCommands") {
  sim::TimingSpec::Dram spec = PaperDram();
  for (std::uint32_t* time : {&spec.tCCD, &spec.tCCDL, &spec.tRRD, &spec.tRCD, &spec.tRAS, &spec.tRP, &spec.tRC,
                              &spec.tCL, &spec.tWL, &spec.tWR, &spec.tCDLR, &spec.tRTP}) {
    *time = sim::TimingSpec::Dram::kMaxCommandCycles;
  }
  CompareWithPlain(spec, 1, 300'000, 16, 500);
}

TEST_CASE("DramQueue_MoreArrivalsThanOrders_IndexedAndPlainGiveTheSameCommands") {
  sim::TimingSpec::Dram spec = PaperDram();
  CompareWithPlain(spec, 2, 400'000, 16, 5);  // 80,000 requests; the index counts to 32,767
}

}  // namespace
}  // namespace gridloom::timing
