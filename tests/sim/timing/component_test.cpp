// Parts of the model on their own: at exact cycles, and against plain definitions.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "sim/timing/memory/address_map.h"
#include "sim/timing/memory/cache.h"
#include "sim/timing/memory/coalescer.h"
#include "sim/timing/memory/fifo.h"
#include "sim/timing/memory/inbox.h"
#include "sim/timing/memory/memory_partition.h"
#include "sim/timing/memory/message.h"
#include "sim/timing/memory/mshr.h"
#include "sim/timing/memory/set_search.h"
#include "sim/timing/memory/tlb.h"
#include "sim/timing/sm/scheduler.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

Parameters ParametersOf(const std::string& device) {
  auto parameters = Derive(TestDevice(device));
  REQUIRE(parameters.ok());
  return *parameters;
}

TEST_CASE("Derive_EveryShippedDevice_HasLatenciesThatTheStagesLeaveRoomFor") {
  for (const std::string& id : sim::DeviceIds("configs/devices")) {
    const auto parameters = Derive(TestDevice(id));
    INFO(id << ": " << (parameters.ok() ? "" : parameters.error().message));
    REQUIRE(parameters.ok());
    CHECK(parameters->window > 0);
    // So that SMs and partitions may be simulated at the same time (Engine).
    CHECK(2 * parameters->window <= parameters->request_latency + parameters->response_latency);
  }
}

TEST_CASE("Derive_ClocksTooFarApart_AreNamed") {
  sim::DeviceSpec device = TestDevice("v100");
  device.timing.clock.l2_mhz = device.timing.clock.sm_mhz / 16;
  CHECK(Derive(device).error().message == "the clocks of timing.clock differ by a factor of 16 or more");
}

TEST_CASE("Derive_LatencyShorterThanItsStages_IsNamed") {
  sim::DeviceSpec device = TestDevice("v100");
  device.timing.l2.latency = 40;
  CHECK(Derive(device).error().message ==
        "timing.l2.latency is 40; the stages that the model adds up take at least 56");
  device.timing.l2.latency = 212;
  device.timing.dram.latency = 220;
  CHECK(Derive(device).error().message ==
        "timing.dram.latency is 220; the stages that the model adds up take at least 258");
}

TEST_CASE("Documentation_NamesEveryCounterWithItsMeaning") {
  std::ifstream file("docs/timing.md");
  const std::string docs((std::istreambuf_iterator<char>(file)), {});
  for (const CounterInfo& counter : CounterTable()) {
    INFO(counter.name);
    const std::string row = "| `" + std::string(counter.name) + "` | " + std::string(counter.unit) + " | " +
                            std::string(counter.meaning) + " |";
    CHECK(docs.find(row) != std::string::npos);
  }
}

TEST_CASE("ClockRatio_ConvertsToTheFirstCycleAtOrAfter") {
  const ClockRatio ratio(700, 924);  // 25 to 33
  CHECK(ratio.Forward(0) == 0);
  CHECK(ratio.Forward(1) == 2);  // 1.32
  CHECK(ratio.Forward(25) == 33);
  CHECK(ratio.Back(33) == 25);
  CHECK(ratio.Back(34) == 26);  // 25.76
  CHECK(ratio.During(34) == 25);
  CHECK(ratio.Forward(kNever) == kNever);
  for (Cycle cycle = 0; cycle < 5000; ++cycle) {
    // Each cycle of the other clock is in exactly the span of the cycle during which it begins.
    const Cycle during = ratio.During(cycle);
    REQUIRE(ratio.Forward(during) <= cycle);
    REQUIRE(ratio.Forward(during + 1) > cycle);
  }
}

TEST_CASE("ClockRatio_IsExactFarFromTheBeginning") {
  std::mt19937_64 random(6);
  __extension__ using Wide = unsigned __int128;
  for (int i = 0; i < 100000; ++i) {
    const auto to = static_cast<std::uint32_t>(300 + random() % 2700),
               from = static_cast<std::uint32_t>(300 + random() % 2700);
    const ClockRatio ratio(from, to);
    // Multiples of the clocks, where rounding turns, and anything else.
    const Cycle cycle = i % 2 == 0 ? (random() >> 28) * from + random() % 3 : random() >> (16 + random() % 40);
    REQUIRE(ratio.Forward(cycle) == static_cast<Cycle>((Wide{cycle} * to + from - 1) / from));
    REQUIRE(ratio.Back(cycle) == static_cast<Cycle>((Wide{cycle} * from + to - 1) / to));
    REQUIRE(ratio.During(cycle) == static_cast<Cycle>(Wide{cycle} * from / to));
  }
}

TEST_CASE("Divisor_DividesAsDivisionDoes") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 200000; ++i) {
    const auto value = static_cast<std::uint32_t>(1 + random() % 65536);
    const std::uint64_t dividend = random() >> (17 + random() % 40);
    const Divisor divisor(i % 3 == 0 ? 1u << value % 16 : value);
    REQUIRE(divisor.Quotient(dividend) == dividend / divisor.value());
    REQUIRE(divisor.Remainder(dividend) == dividend % divisor.value());
    const std::uint64_t large = random() >> (1 + random() % 20);
    REQUIRE(divisor.ExactQuotient(large) == large / divisor.value());
  }
}

TEST_CASE("Port_PassesPacketsOneAfterTheOther") {
  Port port(32, 1000, 1000, 8);  // 8 bytes of header: a quarter of a cycle
  CHECK(port.Duration(0) == 1);
  CHECK(port.Duration(4) == 5);  // 4.25
  CHECK(port.Send(10, 4) == 15);
  CHECK(port.free_at() == 15);
  CHECK(port.Send(10, 4) == 19);  // 14.25 + 4.25
  CHECK(port.Send(30, 0) == 31);
  Port slow(32, 500, 1000, 8);  // half the clock
  CHECK(slow.Duration(4) == 9);
}

TEST_CASE("Inbox_OrdersByArrivalThenSource_InWhateverPortionsMessagesCome") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<Response> messages;
    for (std::uint16_t i = 0; i < 60; ++i) {
      Response message;
      message.arrival = 100 + random() % 20;
      message.source = static_cast<std::uint16_t>(random() % 5);
      messages.push_back(message);
    }
    // Messages of one source come in the order of their arrival.
    std::ranges::stable_sort(messages, {}, &Response::arrival);
    for (std::uint16_t i = 0; i < messages.size(); ++i) messages[i].id = i;
    std::ranges::stable_sort(messages, {}, &Response::source);
    Inbox<Response> whole, portions;
    for (const Response& message : messages) whole.Add(message);
    whole.Sort();
    for (std::size_t i = 0; i < messages.size(); ++i) {
      portions.Add(messages[i]);
      if (random() % 4 == 0) portions.Sort();
    }
    portions.Sort();
    std::ranges::stable_sort(messages, {}, [](const Response& m) { return std::pair(m.arrival, m.source); });
    for (const Response& message : messages) {
      REQUIRE(whole.front().id == message.id);
      REQUIRE(portions.front().id == message.id);
      whole.Pop();
      portions.Pop();
    }
    CHECK(whole.empty());
    CHECK(portions.next_arrival() == kNever);
  }
}

TEST_CASE("WakeWheel_BringsWarpsUpInTheirCycle_AndNotBefore") {
  WakeWheel wheel;
  CHECK(wheel.Next(5) == kNever);
  wheel.Add(5, 9, 3);
  wheel.Add(5, 70, 1);
  CHECK(wheel.Next(5) == 9);
  CHECK(wheel.Take(8) == 0);
  CHECK(wheel.Take(9) == 1 << 3);
  CHECK(wheel.Next(9) == 68);  // 70 is too far: looked at after 63 cycles
  CHECK(wheel.Take(68) == 1 << 1);
  CHECK(wheel.Next(68) == kNever);
}

TEST_CASE("Scheduler_Pick_FollowsItsOrder") {
  Scheduler scheduler;
  scheduler.age[2] = 30;
  scheduler.age[5] = 10;
  scheduler.age[9] = 20;
  scheduler.last = 5;
  const WarpMask all = 1 << 2 | 1 << 5 | 1 << 9, without_last = 1 << 2 | 1 << 9;
  CHECK(scheduler.Pick(sim::WarpOrder::kGreedyThenOldest, all) == 5);
  CHECK(scheduler.Pick(sim::WarpOrder::kGreedyThenOldest, without_last) == 9);
  CHECK(scheduler.Pick(sim::WarpOrder::kLooseRoundRobin, all) == 9);
  scheduler.last = 9;
  CHECK(scheduler.Pick(sim::WarpOrder::kLooseRoundRobin, all) == 2);
  CHECK(scheduler.Pick(sim::WarpOrder::kLooseRoundRobin, 1 << 9) == 9);
}

TEST_CASE("Scheduler_Refill_ReplacesWarpsThatWaitForMemory_ByTheOldestReady") {
  Scheduler scheduler;
  scheduler.resident = 0xf;
  scheduler.ready = 0xf;
  for (std::uint32_t w = 0; w < 4; ++w) scheduler.age[w] = 10 - w;
  scheduler.Refill(2);
  CHECK(scheduler.active == 0b1100);
  scheduler.ready = 0b0111;
  scheduler.memory = 0b1000;
  scheduler.Refill(2);
  CHECK(scheduler.active == 0b0110);
}

TEST_CASE("Cache_EvictsTheLeastRecentlyUsedOfTheSet") {
  Cache cache(2 * 128, 2);  // one set of two ways
  Cache::Victim victim;
  cache.FindOrInsert(10, victim).valid = 1;
  cache.FindOrInsert(11, victim).valid = 3;
  CHECK(victim.dirty == 0);
  cache.Touch(cache.Find(10));
  cache.MarkDirty(*cache.Find(11), 2);
  CHECK(cache.FindOrInsert(11, victim).valid == 3);
  cache.FindOrInsert(12, victim);
  CHECK(victim.line == 11);
  CHECK(victim.dirty == 2);
  CHECK(cache.Find(11) == nullptr);
  CHECK(cache.Find(10)->valid == 1);
  CHECK(cache.Find(12)->valid == 0);
}

class HitRecorder final : public L2Replacement {
 public:
  void OnAccess(Cycle, const L2Access&, L2Place, bool found) override { hit = found; }
  bool hit = false;
};

TEST_CASE("L2Slice_LongUseOfOneSet_EvictsTheLeastRecentlyUsed") {
  const Parameters parameters = ParametersOf("v100");
  const AddressMap map(parameters);
  HitRecorder recorder;
  Ports ports;
  ports.l2 = &recorder;
  MemoryPartition partition(parameters, map, ports, 0, 1, false);
  const std::uint64_t sets = parameters.l2_sets(), ways = parameters.timing().l2.ways;
  std::vector<std::uint64_t> by_use;  // lines of the set, the one used last in front
  std::mt19937_64 random(7);
  Cycle now = 1000;
  for (int i = 0; i < 5000; ++i, now += 2000) {  // each request finds the one before it done
    // The sets of tags below 32 are turned against each other by the tag: these lines share a set.
    const std::uint64_t tag = std::min(random() % (ways + 4), random() % (ways + 4));
    partition.Add(Request(
        {.arrival = now, .line = tag * sets + (sets + 3 - tag) % sets, .kind = RequestKind::kRead, .sectors = 1}));
    partition.SortInboxes();
    partition.Run(now + 2000);
    partition.outbox().Seal();
    partition.outbox().sealed(0).clear();
    const auto known = std::ranges::find(by_use, tag);
    REQUIRE(recorder.hit == (known != by_use.end()));
    if (known != by_use.end()) by_use.erase(known);
    by_use.insert(by_use.begin(), tag);
    if (by_use.size() > ways) by_use.pop_back();
  }
}

TEST_CASE("L2Slice_MoreRequestsThanItHasPlacesFor_WaitForALine_AllAreAnswered") {
  constexpr std::uint32_t kRequests = (1u << 20) + 20'000, kDelay = 3'000'000;
  Parameters parameters = ParametersOf("v100");
  parameters.dram_delay = kDelay;  // data come so late that a device would have to send for as long
  const AddressMap map(parameters);
  const Ports ports;
  MemoryPartition partition(parameters, map, ports, 0, 1, false);
  constexpr Cycle kFirst = 1000;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const auto sectors = static_cast<std::uint8_t>(1 << i % 4);  // some wait for what comes later than others' data
    partition.Add(Request({.arrival = kFirst + 2 * i, .line = 0, .kind = RequestKind::kRead, .sectors = sectors}));
  }
  partition.SortInboxes();
  partition.Run(kFirst + 2 * Cycle{kRequests} + 3 * Cycle{kDelay});
  partition.outbox().Seal();
  CHECK(partition.outbox().sealed(0).size() == kRequests);
  CHECK(partition.next() == kNever);
}

TEST_CASE("Tlb_WalksForPagesThatItDoesNotKnow_AndForgetsTheOneUsedLongestAgo") {
  Tlb tlb(2, 2, 4096, 300);  // a line is a 32nd of a page
  const auto ready = [&](Cycle now, std::uint64_t line, bool hit) {
    const Tlb::Translation translation = tlb.Translate(now, line);
    CHECK(translation.hit == hit);
    return translation.ready;
  };
  CHECK(ready(10, 0, false) == 310);
  CHECK(ready(11, 31, true) == 310);   // the same page waits for the walk
  CHECK(ready(11, 32, false) == 311);  // the next one walks beside it
  CHECK(ready(309, 1, true) == 310);
  CHECK(ready(310, 1, true) == 310);
  CHECK(ready(500, 1, true) == 500);
  CHECK(ready(501, 64, false) == 801);  // in place of the page of line 32
  CHECK(ready(900, 0, true) == 900);
  CHECK(ready(900, 32, false) == 1200);
  CHECK_FALSE(Tlb(0, 8, 4096, 300).present());
}

TEST_CASE("SetSearch_FindsWhatALoopFinds") {
  std::mt19937_64 random(12);
  for (int round = 0; round < 5000; ++round) {
    const auto count = static_cast<std::uint32_t>(kWaysPerStep * (1 + random() % 8));
    std::vector<std::uint32_t> entries(count);
    std::vector<std::uint8_t> ages(count);
    for (std::uint32_t& entry : entries) entry = static_cast<std::uint32_t>(random() % 40 * 0x01010101);
    for (std::uint8_t& age : ages) age = static_cast<std::uint8_t>(random() >> (56 + round % 8));
    std::uint64_t expected = 0;
    for (std::uint32_t i = 0; i < count; ++i) expected |= std::uint64_t{entries[i] == entries[count / 2]} << i;
    REQUIRE(Matches(entries.data(), count, entries[count / 2]) == expected);
    REQUIRE(FirstLeast(ages.data(), count) ==
            static_cast<std::uint32_t>(std::ranges::min_element(ages) - ages.begin()));
  }
}

TEST_CASE("Fifo_GivesItemsInOrder_AroundTheEndOfItsArray") {
  Fifo<int> fifo;
  int in = 0, out = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < round % 23; ++i) fifo.push_back(in++);
    for (int i = 0; i < round % 19 && !fifo.empty(); ++i, fifo.pop_front()) REQUIRE(fifo.front() == out++);
  }
  for (; !fifo.empty(); fifo.pop_front()) REQUIRE(fifo.front() == out++);
  CHECK(out == in);
}

TEST_CASE("MshrTable_WaiterIsDone_WhenItsLastSectorComes") {
  for (const bool plain : {false, true}) {
    MshrTable table(2, 2, plain);
    const std::uint16_t entry = table.Allocate(77);
    CHECK(table.Find(77) == entry);
    CHECK(table.Find(78) == MshrTable::kNone);
    table.AddWaiter(entry, 1, 0b0011);
    table.AddWaiter(entry, 2, 0b0110);
    CHECK_FALSE(table.CanMerge(entry));
    std::vector<std::uint32_t> done;
    const auto note = [&](std::uint32_t load) { done.push_back(load); };
    table.Fill(entry, 0b0011, note);
    CHECK(done == std::vector<std::uint32_t>{1});
    CHECK(table.outstanding(entry) == 0b0100);
    CHECK(table.CanMerge(entry));
    table.Allocate(MshrTable::kAnonymous);
    CHECK(table.full());
    table.Fill(entry, 0b0100, note);
    CHECK(done == std::vector<std::uint32_t>{1, 2});
    CHECK(table.Find(77) == MshrTable::kNone);
    CHECK(table.used() == 1);
  }
}

TEST_CASE("MshrTable_RandomUse_FindsWhatAMapFinds") {
  std::mt19937_64 random(9);
  MshrTable table(48, 8, false);
  std::map<std::uint64_t, std::uint16_t> expected;
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t key = random() % 200;
    const auto known = expected.find(key);
    REQUIRE(table.Find(key) == (known == expected.end() ? MshrTable::kNone : known->second));
    if (known != expected.end() && random() % 2 == 0) {
      table.Fill(known->second, 1, [](std::uint32_t) {});
      expected.erase(known);
    } else if (known == expected.end() && !table.full()) {
      const std::uint16_t entry = table.Allocate(key);
      table.AddWaiter(entry, 0, 1);
      expected[key] = entry;
    }
  }
}

TEST_CASE("AddressMap_IsOneToOne_AndSpreadsLines") {
  for (const std::string name : {"gtx480", "k20c", "v100", "h200", "fermi-24", "crcs"}) {
    INFO(name);
    const Parameters parameters = ParametersOf(name);
    const AddressMap map(parameters);
    std::mt19937_64 random(3);
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t line = random() >> (24 + random() % 30);
      REQUIRE(map.Line(map.Home(line)) == line);
    }
    for (const std::uint64_t stride : {1, 2, 32, 512, 8192, 1 << 16}) {
      std::map<std::uint32_t, int> uses;
      const int count = 4096;
      for (int i = 0; i < count; ++i) ++uses[map.Home(static_cast<std::uint64_t>(i) * stride).partition];
      int most = 0;
      for (const auto& [partition, n] : uses) most = std::max(most, n);
      INFO("stride " << stride);
      CHECK(most <= 3 * count / static_cast<int>(parameters.timing().dram.channels));
    }
  }
}

TEST_CASE("AddressMap_NeighbouringLinesOfAChannel_ShareARow") {
  const Parameters parameters = ParametersOf("v100");
  const AddressMap map(parameters);
  // 32 channels of blocks of 256 bytes: 64 KiB hold one row of 2 KiB of each.
  std::set<std::tuple<int, int, int>> rows;
  for (std::uint64_t line = 0; line < 65536 / 128; ++line) {
    const LineHome home = map.Home(line);
    const DramPlace place = map.Place(home.slice, home.local);
    rows.insert({home.partition, static_cast<int>(place.bank), static_cast<int>(place.row)});
  }
  CHECK(rows.size() == 32);
}

/// Passes over the banks as the definition has it.
std::uint32_t PlainPasses(const std::array<std::uint64_t, 32>& addresses, std::uint32_t mask, std::uint32_t width,
                          std::uint32_t banks, std::uint32_t bank_bytes) {
  const std::uint32_t group = std::min(32u, banks * bank_bytes / width);
  std::uint32_t passes = 0;
  for (std::uint32_t first = 0; first < 32; first += group) {
    std::map<std::uint64_t, std::set<std::uint64_t>> words;
    for (std::uint32_t lane = first; lane < first + group; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      for (std::uint32_t b = 0; b < width; ++b) {
        const std::uint64_t word = (addresses[lane] + b) / bank_bytes;
        words[word % banks].insert(word);
      }
    }
    std::size_t most = 0;
    for (const auto& [bank, set] : words) most = std::max(most, set.size());
    passes += static_cast<std::uint32_t>(most);
  }
  return passes;
}

TEST_CASE("CoalescerAndBanks_RandomAccesses_MatchTheirDefinitions") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20000; ++round) {
    trace::CtaTrace cta;
    const std::uint32_t width = 1u << random() % 5;
    auto mask = static_cast<std::uint32_t>(random());
    if (random() % 2 == 0) mask = kAllLanes;
    if (random() % 4 == 0) mask = ((1u << (1 + random() % 31)) - 1) << random() % 16;
    trace::MemoryAccess access{.base = random() % 64 * width + 4096, .stride = 0, .mask = mask};
    if (random() % 3 == 0) {
      std::vector<std::uint64_t> lanes;
      for (int lane = 0; lane < 32; ++lane) lanes.push_back(random() % (256u << random() % 4) * width);
      access.base = trace::AppendLanes(lanes, cta.lanes);
      access.stride = trace::MemoryAccess::kScattered;
    } else {
      access.stride = (static_cast<std::int32_t>(random() % 70) - 6) * static_cast<std::int32_t>(width);
    }
    LineList fast, plain;
    const std::uint64_t shift = random() % 8 * width;
    const AccessKind kind{.atomic = random() % 2 == 0, .store = random() % 2 == 0};
    Coalesce(cta, access, shift, width, kind, fast);
    CoalescePlainly(cta, access, shift, width, kind, plain);
    REQUIRE(fast.count == plain.count);
    for (std::uint32_t i = 0; i < fast.count; ++i) {
      INFO("round " << round << ", line " << i);
      REQUIRE(fast.lines[i].line == plain.lines[i].line);
      REQUIRE(fast.lines[i].sectors == plain.lines[i].sectors);
      REQUIRE(fast.lines[i].partial == plain.lines[i].partial);
      REQUIRE(fast.lines[i].lanes == plain.lines[i].lanes);
      if (plain.lines[i].partial != 0) REQUIRE(fast.words[i] == plain.words[i]);
    }
    std::array<std::uint64_t, 32> addresses{};
    trace::LaneAddresses(cta, access, addresses);
    for (const std::uint32_t bank_bytes : {4u, 8u}) {
      REQUIRE(SharedPasses(cta, access, width, 32, bank_bytes, false) ==
              PlainPasses(addresses, mask, width, 32, bank_bytes));
    }
  }
}

/// The rule as an engineer of NVIDIA's gives it (topic 77228 of its developer forum).
TEST_CASE("SharedPasses_OfTwins_AreHalfAsMany") {
  const auto passes = [](std::uint32_t width, std::uint32_t mask, bool twins, const auto& number_of) {
    trace::CtaTrace cta;
    std::vector<std::uint64_t> addresses;
    for (std::uint32_t lane = 0; lane < 32; ++lane) addresses.push_back(number_of(lane) * width);
    const trace::MemoryAccess access{
        .base = trace::AppendLanes(addresses, cta.lanes), .stride = trace::MemoryAccess::kScattered, .mask = mask};
    return SharedPasses(cta, access, width, 32, 4, twins);
  };
  const auto one = [](std::uint32_t) { return 3u; };
  const auto next = [](std::uint32_t lane) { return lane / 2; };
  const auto next_but_one = [](std::uint32_t lane) { return lane / 4 * 2 + lane % 2; };
  const auto far = [](std::uint32_t lane) { return lane / 8 * 4 + lane % 4; };
  for (const auto& [width, all] : {std::pair(16u, 4u), std::pair(8u, 2u)}) {
    CHECK(passes(width, kAllLanes, false, one) == all);
    CHECK(passes(width, kAllLanes, true, one) == all / 2);
    CHECK(passes(width, kAllLanes, true, next) == all / 2);
    CHECK(passes(width, kAllLanes, true, next_but_one) == all / 2);
    CHECK(passes(width, kAllLanes, true, far) == all);
    // Of active lanes, that is.
    CHECK(passes(width, 0x55555555, true, [](std::uint32_t lane) { return lane; }) == all / 2);
  }
  CHECK(passes(4, kAllLanes, true, next) == 1);
  CHECK(SharedPasses({}, {.base = 64, .stride = 0, .mask = kAllLanes}, 16, 32, 4, true) == 2);
}

TEST_CASE("SharedAtomics_OnOneAddress_TakeTurns") {
  const trace::CtaTrace cta;
  CHECK(SharedAtomicPasses(cta, {.base = 64, .stride = 0, .mask = kAllLanes}, 4, 32, 4, 2) == 64);
  CHECK(SharedAtomicPasses(cta, {.base = 64, .stride = 4, .mask = kAllLanes}, 4, 32, 4, 2) == 2);
  CHECK(SharedAtomicPasses(cta, {.base = 64, .stride = 0, .mask = 0}, 4, 32, 4, 2) == 0);
}

}  // namespace
}  // namespace gridloom::timing
