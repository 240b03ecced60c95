// L2 with labels: who is written back and dropped when, who stays, and that neither short cuts, windows nor threads
// change anything.
#include <bit>
#include <catch2/catch.hpp>
#include <map>

#include "scheduler/policy/builtin.h"
#include "sim/hardware/catalog.h"
#include "sim/hardware/tagged_l2/labels.h"
#include "sim/timing/device_input.h"
#include "tests/sim/hardware/with_parts.h"
#include "tests/sim/timing/random_launch.h"
#include "tests/sim/timing/test_part.h"

namespace gridloom::timing {
namespace {

using hardware::kNoLabel;
using hardware::Labels;
using trace::OpClass;
using trace::Space;

TEST_CASE("Labels_OfAStream_NameLaunchesByTheirPlace_AndSayWhoNeedsWhat") {
  Labels labels(Labels::Naming::kPosition, 3, 5);
  labels.Give(0, 7, "a", 0);
  labels.Give(1, 7, "a", 0);
  labels.Give(2, 9, "a", 0);
  CHECK(labels.Of(0) != labels.Of(1));
  CHECK(labels.Of(0) != labels.Of(2));
  CHECK(labels.ProducerOf(0) == kNoLabel);
  CHECK(labels.ProducerOf(1) == labels.Of(0));
  CHECK(labels.Needed(labels.Of(0), 0));
  CHECK_FALSE(labels.Needed(labels.Of(1), 0));
  CHECK_FALSE(labels.Needed(labels.Of(2), 0));
  labels.Begin(1, 50);
  CHECK_FALSE(labels.Running(labels.Of(0), 49));
  CHECK(labels.Running(labels.Of(0), 50));
  CHECK(labels.End(0, 60) == std::nullopt);
  CHECK(labels.End(1, 100) == labels.Of(0));
  CHECK(labels.Needed(labels.Of(0), 99));
  CHECK_FALSE(labels.Needed(labels.Of(0), 100));
  labels.Forget(101);
  CHECK_FALSE(labels.Needed(labels.Of(0), 100));
  CHECK(labels.launches() == 3);
  labels.Forget(Cycle{1} << 30);
  CHECK(labels.launches() == 1);
  // What it wrote is not forgotten for those who come later.
  labels.Give(3, 7, "a", 200);
  CHECK(labels.ProducerOf(3) == kNoLabel);
}

TEST_CASE("Labels_AreUsedAgain_WhenThereAreMoreThanTheirBitsTellApart") {
  Labels labels(Labels::Naming::kPosition, 1, 1);
  for (std::uint32_t i = 0; i < 4; ++i) labels.Give(i, 0, "a", 0);
  for (std::uint32_t i = 4; i < 8; ++i) labels.Give(i, i, "a", 0);
  CHECK(labels.labels() == 4);
  CHECK(labels.Of(0) == labels.Of(2));
  CHECK(labels.Of(1) == labels.Of(3));
  CHECK(labels.Of(4) == labels.Of(6));
  // The label is needed until the last of those that need it has ended.
  labels.End(1, 10);
  CHECK(labels.Needed(labels.Of(0), 10));
  labels.End(3, 20);
  CHECK_FALSE(labels.Needed(labels.Of(0), 20));
}

TEST_CASE("Labels_ThatReachFurther_AreNeededByLaterLaunches_Too") {
  Labels labels(Labels::Naming::kPosition, 3, 5, 2);
  for (std::uint32_t i = 0; i < 4; ++i) labels.Give(i, 0, "a", 0);
  labels.Begin(1, 5);
  CHECK(labels.Running(labels.Of(0), 5));
  CHECK(labels.End(0, 10) == std::nullopt);
  CHECK(labels.End(1, 20) == std::nullopt);
  CHECK(labels.Needed(labels.Of(0), 20));
  CHECK(labels.End(2, 30) == labels.Of(0));
  CHECK_FALSE(labels.Needed(labels.Of(0), 30));
  CHECK(labels.Dead(labels.Of(0), 30));
  CHECK_FALSE(labels.Dead(labels.Of(1), 30));
  CHECK(labels.End(3, 40) == labels.Of(1));
}

TEST_CASE("Labels_OfKernels_AreThoseOfTheirNames") {
  Labels labels(Labels::Naming::kKernel, 3, 5);
  labels.Give(0, 0, "a", 0);
  labels.Give(1, 0, "b", 0);
  labels.Give(2, 0, "a", 0);
  CHECK(labels.Of(0) == labels.Of(2));
  CHECK(labels.Of(0) != labels.Of(1));
}

// ---- the part ----

sim::DeviceSpec Device(const std::string& values = "") {
  sim::DeviceSpec device = TestDevice("gtx480");
  device.sm.count = 2;
  REQUIRE(sim::ApplyDeviceText("proposed: tagged-l2\nhardware: {tagged-l2: {" + values + "}}", "test", device).ok());
  return device;
}

Parts PartsOf(const sim::DeviceSpec& device) {
  auto parts = hardware::Build(device);
  INFO((parts.ok() ? "" : parts.error().message));
  REQUIRE(parts.ok());
  return *parts;
}

/// `lines` CTAs of one warp; CTA i accesses line first + i.
std::shared_ptr<trace::CtaSource> Touch(const std::string& name, bool writes, std::uint64_t first,
                                        std::uint64_t lines) {
  CodeBuilder code(name);
  code.Block();
  if (writes) code.Store(Space::kGlobal, 1);
  else code.Load(Space::kGlobal, 1, 4, trace::kCacheGlobal);
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0);
  cta.Access(first * 128);
  return SameCtas(code.code(), {.ctas = lines, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0},
                  cta.Finish(), 128);
}

constexpr std::uint64_t kFirst = 1 << 14;

TEST_CASE("TaggedL2_WritesBackAndDrops_WhatTheKernelBeforeWrote_WhenAKernelHasEnded") {
  const std::vector<std::shared_ptr<trace::CtaSource>> launches = {
      Touch("produce", true, kFirst, 100), Touch("consume", false, kFirst, 100), Touch("again", false, kFirst, 100)};
  const sim::DeviceSpec device = Device("sweep: eager"), stays = Device("sweep: off");
  const Outcome swept = RunLaunches(device, launches, {.parts = PartsOf(device)});
  CHECK(Count(device, swept, "l2_sweeps") == 2);
  CHECK(Count(device, swept, "l2_swept_lines") == 100);
  CHECK(Count(device, swept, "l2_producer_hits") == 100);
  CHECK(Count(device, swept, "l2_labelled_writes") == 100);
  CHECK(swept.counters.memory.dram_write_bytes == 100 * 128);
  CHECK(swept.counters.memory.dram_read_bytes == 100 * 128);  // the third one finds nothing
  const Outcome kept = RunLaunches(stays, launches, {.parts = PartsOf(stays)});
  CHECK(kept.counters.memory.dram_write_bytes == 0);
  CHECK(kept.counters.memory.dram_read_bytes == 0);
}

TEST_CASE("TaggedL2_OfOneKernelInEachStream_SweepsNothing") {
  const sim::DeviceSpec device = Device("sweep: eager");
  const std::vector<std::shared_ptr<trace::CtaSource>> launches = {Touch("a", true, kFirst, 50),
                                                                   Touch("a", true, 2 * kFirst, 50)};
  const Outcome outcome = RunLaunches(device, launches, {.parts = PartsOf(device)}, 2);
  CHECK(Count(device, outcome, "l2_sweeps") == 0);
  CHECK(outcome.counters.memory.dram_write_bytes == 0);
}

TEST_CASE("TaggedL2_KeepsLinesThatAConsumerNeeds_WhileOthersComeAndGo") {
  // Half of L2 is written; then twice L2 is read by another stream, before the consumer reads what was written.
  const std::uint64_t lines = TestDevice("gtx480").l2.size_bytes / 128;
  const std::vector<std::shared_ptr<trace::CtaSource>> launches = {Touch("produce", true, kFirst, lines / 2),
                                                                   Touch("stream", false, 16 * kFirst, 2 * lines),
                                                                   Touch("consume", false, kFirst, lines / 2)};
  const auto run = [&](const std::string& values) {
    const sim::DeviceSpec device = Device(values);
    const auto policy = policy::MakePolicy("serial").value();
    auto engine = Engine::Create(device, *policy, {.parts = PartsOf(device)});
    REQUIRE(engine.ok());
    const std::uint32_t streams[] = {0, 1, 0};
    for (std::size_t i = 0; i < launches.size(); ++i) {
      REQUIRE((*engine)
                  ->Add(KernelWork{.order = {.stream = streams[i], .submitted = 0, .after = {}}, .source = launches[i]})
                  .ok());
    }
    REQUIRE((*engine)->Run().ok());
    Outcome outcome;
    outcome.counters = (*engine)->counters();
    return std::pair(Count(device, outcome, "l2_producer_hits"), Count(device, outcome, "l2_needed_lost"));
  };
  // Serial takes them in the order in which they become ready: the second one is there before the third.
  CHECK(run("victims: unneeded") == std::pair(lines / 2, std::uint64_t{0}));
  const auto [hits, lost] = run("victims: lru");
  CHECK(hits == 0);
  CHECK(lost == lines / 2);
}

/// Knows which sectors of each line are dirty from what the slices tell, and what DRAM is given: both have to agree.
class Witness final : public Part, L2Replacement, DramEvents {
 public:
  Witness(std::shared_ptr<Part> part, std::uint32_t access_bytes)
      : part_(std::move(part)), sectors_per_burst_(access_bytes / 32) {}
  void Attach(Ports& ports, DeviceInput& input) override {
    part_->Attach(ports, input);
    inner_ = ports.l2;
    ports.l2 = this;
    ports.dram_events.push_back(this);
  }
  std::size_t counters() const override { return part_->counters(); }
  void Count(std::span<std::uint64_t> values) const override { part_->Count(values); }

  std::uint64_t Candidates(Cycle now, const L2Access& access, std::uint32_t set) override {
    return inner_->Candidates(now, access, set);
  }
  void OnAccess(Cycle now, const L2Access& access, L2Place place, bool hit) override {
    if (access.kind != RequestKind::kRead)
      dirty_[{access.partition, access.slice, place.set, place.way}] |= access.sectors;
    inner_->OnAccess(now, access, place, hit);
  }
  void OnEvict(Cycle now, std::uint32_t partition, std::uint32_t slice, L2Place place) override {
    const auto line = dirty_.find({partition, slice, place.set, place.way});
    if (line != dirty_.end()) expected += Bursts(line->second);
    if (line != dirty_.end()) dirty_.erase(line);
    inner_->OnEvict(now, partition, slice, place);
  }
  void OnSweep(Cycle now, std::uint32_t partition, std::uint32_t slice, std::uint64_t tag,
               std::vector<L2Place>& lines) override {
    inner_->OnSweep(now, partition, slice, tag, lines);
  }
  void OnEnqueue(Cycle, const DramRequest& request) override {
    if (request.writes) written += request.bursts;
  }
  std::uint64_t expected = 0, written = 0;

 private:
  std::uint64_t Bursts(std::uint8_t sectors) const {
    std::uint64_t bursts = 0;
    for (std::uint32_t first = 0; first < 4; first += sectors_per_burst_) {
      bursts += (sectors >> first & ((1u << sectors_per_burst_) - 1)) != 0;
    }
    return bursts;
  }
  const std::shared_ptr<Part> part_;
  const std::uint32_t sectors_per_burst_;
  L2Replacement* inner_ = nullptr;
  std::map<std::array<std::uint32_t, 4>, std::uint8_t> dirty_;
};

TEST_CASE("TaggedL2_OfRandomLaunches_IsBitEqualInPlainMode_AndWritesBackWhatWasWritten") {
  static constexpr const char* kVictims[] = {"lru", "unneeded", "half", "running", "unwritten"};
  static constexpr const char* kSweeps[] = {"eager", "lazy", "off"};
  std::uint64_t swept = 0;
  for (std::uint64_t seed = 300; seed < 324; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    sim::DeviceSpec device = RandomDevice(random);
    // A small L2, so that lines have to go.
    const std::uint32_t least_sets = (256 + device.timing.l2.slices - 1) / device.timing.l2.slices;  // of a slice
    device.l2.size_bytes = device.timing.l2.slices * device.timing.l2.ways * device.timing.l2.halves * 128 * least_sets;
    device.l2.persisting_bytes = device.l2.max_window_bytes = 0;
    const std::string values =
        "victims: " + std::string(kVictims[seed % 5]) + ", sweep: " + kSweeps[seed % 3] +
        ", naming: " + (seed % 2 == 0 ? "position" : "kernel") + ", kernel_bits: " + std::to_string(random() % 3) +
        ", stream_bits: " + std::to_string(random() % 3) + ", reach: " + std::to_string(1 + random() % 3);
    REQUIRE(sim::ApplyDeviceText("proposed: tagged-l2\nhardware: {tagged-l2: {" + values + "}}", "test", device).ok());
    std::vector<std::shared_ptr<trace::CtaSource>> launches;
    for (int i = 0; i < 6; ++i) launches.push_back(RandomLaunch(random));
    const auto run = [&](RunOptions options) {
      options.parts = PartsOf(device);
      return RunLaunches(device, launches, options, 2);
    };
    const Outcome fast = run({});
    swept += Count(device, fast, "l2_swept_lines");
    REQUIRE(Difference(fast, run({.plain = true})) == "");
    REQUIRE(Difference(fast, run({.threads = 2})) == "");
    REQUIRE(Difference(fast, run({.window = 1})) == "");
    REQUIRE(Difference(fast, run({.threads = 3, .window = 7})) == "");
    const auto witness = std::make_shared<Witness>(PartsOf(device)[0], device.timing.dram.access_bytes);
    REQUIRE(Difference(fast, RunLaunches(device, launches, {.parts = {witness}}, 2)) == "");
    CHECK(witness->expected == witness->written);
  }
  CHECK(swept > 100);
}

}  // namespace
}  // namespace gridloom::timing
