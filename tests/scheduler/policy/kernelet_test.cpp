#include "scheduler/policy/kernelet.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

namespace gridloom::policy {
namespace {

/// Plans what it is told to, and counts how often it is asked.
struct Told final : CoSchedulePlanner {
  std::optional<CoSchedule> Find(std::span<const std::uint64_t> waiting) override {
    ++asked;
    last.assign(waiting.begin(), waiting.end());
    for (const CoSchedule& schedule : schedules) {
      if (std::ranges::all_of(schedule.parts, [&](const auto& part) {
            return std::ranges::find(waiting, part.profile) != waiting.end();
          }))
        return schedule;
    }
    return std::nullopt;
  }
  std::uint64_t revision() const override { return version; }
  std::vector<CoSchedule> schedules;
  bool Wants(const CoSchedule&) const override { return wants; }
  void Observe(const CoSchedule& schedule, std::array<double, 2> rates) override {
    observed.emplace_back(schedule.parts[0].profile, rates);
    wants = false;
    ++version;
  }
  std::vector<std::uint64_t> last;
  std::vector<std::pair<std::uint64_t, std::array<double, 2>>> observed;
  int asked = 0;
  std::uint64_t version = 0;
  bool wants = false;
};

CoSchedule Together(std::uint64_t a, std::uint32_t ctas_a, std::uint64_t b, std::uint32_t ctas_b,
                    std::uint64_t smallest = 1) {
  return {.parts = {{{a, ctas_a, smallest}, {b, ctas_b, smallest}}}, .profit = 0.1};
}

/// A device of `sms` multiprocessors with room for 8 blocks each, that starts what a policy says as the timing model
/// does.
class KerneletDevice {
 public:
  explicit KerneletDevice(std::size_t sms)
      : sms_(sms, SmView{.free_ctas = 8, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152}) {}

  void Add(KernelView kernel) {
    kernel.needs = {.warps = 4};
    resident_[kernel.id].assign(sms_.size(), 0);
    kernel.resident = resident_[kernel.id];
    kernels_.push_back(kernel);
  }
  /// Asks until nothing starts. Returns the blocks started, by kernel.
  std::map<std::uint64_t, std::uint64_t> Pump(Kernelet& policy) {
    std::map<std::uint64_t, std::uint64_t> started;
    while (const auto slice = policy.Next(snapshot())) {
      const auto kernel = std::ranges::find(kernels_, slice->kernel, &KernelView::id);
      REQUIRE(kernel != kernels_.end());
      REQUIRE(slice->ctas > 0);
      REQUIRE(slice->ctas <= kernel->ctas - kernel->started);
      std::uint64_t placed = 0;
      for (std::size_t sm = 0; sm < sms_.size() && placed < slice->ctas; sm = Place(*kernel, *slice, sm, placed)) {
      }
      if (placed == 0) break;
      started[slice->kernel] += placed;
      if (slice->max_per_sm != 0) CheckShare(*policy.co_schedule(), *kernel, *slice);
    }
    return started;
  }
  /// Ends a block of a kernel on the first multiprocessor from `from` on that has one.
  bool End(std::uint64_t id, std::size_t from = 0) {
    const auto kernel = std::ranges::find(kernels_, id, &KernelView::id);
    for (std::size_t i = 0; i < sms_.size(); ++i) {
      const std::size_t sm = (from + i) % sms_.size();
      if (kernel == kernels_.end() || resident_[id][sm] == 0) continue;
      --resident_[id][sm];
      ++sms_[sm].free_ctas;
      sms_[sm].free_warps += kernel->needs.warps;
      if (++kernel->finished == kernel->ctas) kernels_.erase(kernel);
      return true;
    }
    return false;
  }
  const std::vector<std::uint16_t>& resident(std::uint64_t id) { return resident_[id]; }
  const std::vector<KernelView>& kernels() const { return kernels_; }
  std::uint64_t cycle = 0;
  Snapshot snapshot() const { return {.cycle = cycle, .kernels = kernels_, .sms = sms_}; }

 private:
  /// One block on `sm` if it may be; returns the next multiprocessor to try.
  std::size_t Place(KernelView& kernel, const Slice& slice, std::size_t sm, std::uint64_t& placed) {
    std::uint16_t& here = resident_[kernel.id][sm];
    if (!sms_[sm].Fits(kernel.needs) || (slice.max_per_sm != 0 && here >= slice.max_per_sm)) return sm + 1;
    ++here;
    ++kernel.started;
    ++placed;
    --sms_[sm].free_ctas;
    sms_[sm].free_warps -= kernel.needs.warps;
    return sm;
  }
  /// What was started beside another kind stays within its share.
  void CheckShare(const CoSchedule& schedule, const KernelView& kernel, const Slice& slice) {
    const auto part = std::ranges::find(schedule.parts, kernel.profile, &CoSchedule::Part::profile);
    REQUIRE(part != schedule.parts.end());
    CHECK(slice.max_per_sm == part->ctas_per_sm);
    std::uint64_t running = 0;
    for (const KernelView& other : kernels_)
      running += other.profile == kernel.profile ? other.started - other.finished : 0;
    CHECK(running <= std::max<std::uint64_t>(part->ctas_per_sm * sms_.size(), part->smallest_slice));
  }

  std::vector<SmView> sms_;
  std::vector<KernelView> kernels_;
  std::map<std::uint64_t, std::vector<std::uint16_t>> resident_;
};

using Counts = std::vector<std::uint16_t>;

TEST_CASE("Kernelet_CoSchedule_EachSmHoldsTheQuotas_BlocksAreReplacedByTheirKind") {
  auto planner = std::make_shared<Told>();
  planner->schedules = {Together(7, 5, 9, 3)};
  Kernelet policy(planner);
  KerneletDevice device(2);
  device.Add({.id = 1, .ctas = 100, .profile = 9});
  device.Add({.id = 2, .ctas = 100, .profile = 7});
  device.Pump(policy);
  CHECK(device.resident(2) == Counts{5, 5});
  CHECK(device.resident(1) == Counts{3, 3});
  for (const std::uint64_t kernel : {1, 1, 2, 2, 2, 1}) {
    REQUIRE(device.End(kernel, 1));
    CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{kernel, 1}});
  }
  CHECK(planner->asked == 1);
  CHECK(planner->last == std::vector<std::uint64_t>{7, 9});
}

/// Until cycle `until`, ends all running blocks of each kernel every so many cycles.
void RunWaves(KerneletDevice& device, Kernelet& policy, const std::map<std::uint64_t, std::uint64_t>& every,
              std::uint64_t until) {
  while (device.cycle < until) {
    ++device.cycle;
    bool ended = false;
    for (const auto& [id, cycles] : every) {
      while (device.cycle % cycles == 0 && device.End(id)) ended = true;
    }
    if (ended) device.Pump(policy);
  }
}

TEST_CASE("Kernelet_APlannerThatWantsTo_LearnsHowFastTheTwoGo_Once") {
  auto planner = std::make_shared<Told>();
  planner->schedules = {Together(7, 5, 9, 3)};
  planner->wants = true;
  Kernelet policy(planner, {.probe_waves = 2});
  KerneletDevice device(2);
  device.Add({.id = 1, .ctas = 1000, .profile = 9});
  device.Pump(policy);  // alone: it has more than its part, which drains
  device.Add({.id = 2, .ctas = 35, .profile = 7});
  device.Add({.id = 3, .ctas = 1000, .profile = 7});  // goes on where the one before ends
  RunWaves(device, policy, {{1, 30}, {2, 10}, {3, 10}}, 29);
  CHECK(device.resident(1) == Counts{8, 8});
  RunWaves(device, policy, {{1, 30}, {2, 10}, {3, 10}}, 60);
  CHECK(device.resident(1) == Counts{3, 3});
  CHECK(planner->observed.empty());
  RunWaves(device, policy, {{1, 30}, {2, 10}, {3, 10}}, 300);
  REQUIRE(planner->observed.size() == 1);
  CHECK(planner->observed[0].first == 7);
  CHECK(planner->observed[0].second[0] == Approx(1.0));  // 10 blocks in 10 cycles
  CHECK(planner->observed[0].second[1] == Approx(0.2));  // 6 in 30
  CHECK(planner->asked >= 2);                            // it is asked again when it has learned
}

TEST_CASE("Kernelet_WhileAThirdKernelRuns_NothingIsLearned") {
  auto planner = std::make_shared<Told>();
  planner->schedules = {Together(7, 4, 9, 3)};
  planner->wants = true;
  Kernelet policy(planner, {.probe_waves = 1});
  KerneletDevice device(1);
  device.Add({.id = 3, .ctas = 1, .profile = 5});
  device.Pump(policy);  // stays
  device.Add({.id = 1, .ctas = 1000, .profile = 9});
  device.Add({.id = 2, .ctas = 1000, .profile = 7});
  device.Pump(policy);
  RunWaves(device, policy, {{1, 30}, {2, 10}}, 300);
  CHECK(planner->observed.empty());
  device.End(3);
  RunWaves(device, policy, {{1, 30}, {2, 10}}, 600);
  REQUIRE(planner->observed.size() == 1);
  CHECK(planner->observed[0].second[0] == Approx(0.4));
  CHECK(planner->observed[0].second[1] == Approx(0.1));
}

TEST_CASE("Kernelet_SmallestSlice_WaitsForRoomForOne") {
  auto planner = std::make_shared<Told>();
  planner->schedules = {Together(7, 4, 9, 4, 4)};
  Kernelet policy(planner);
  KerneletDevice device(2);
  device.Add({.id = 1, .ctas = 11, .profile = 7});
  device.Add({.id = 2, .ctas = 100, .profile = 9});
  device.Pump(policy);
  CHECK(device.resident(1) == Counts{4, 4});
  for (int i = 0; i < 3; ++i) {
    device.End(2);
    CHECK(device.Pump(policy).empty());
  }
  device.End(2);
  CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{2, 4}});
  for (int i = 0; i < 2; ++i) {
    device.End(1);
    CHECK(device.Pump(policy).empty());
  }
  device.End(1);  // room for three: what is left is the kernel's last slice
  CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{1, 3}});
  device.End(1);  // nothing waits but the other one: it takes the room
  CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{2, 1}});
}

TEST_CASE("Kernelet_NothingPays_OrNothingIsKnown_IsLeftover") {
  auto planner = std::make_shared<Told>();
  for (const std::uint64_t profile : {std::uint64_t{0}, std::uint64_t{3}}) {
    for (const bool with_planner : {false, true}) {
      Kernelet policy(with_planner ? planner : nullptr);
      KerneletDevice device(1);
      device.Add({.id = 1, .ctas = 10, .profile = profile});
      device.Add({.id = 2, .ctas = 10, .profile = 4});
      CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{1, 8}});
      device.End(1);
      device.End(1);
      device.End(1);
      CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{1, 2}, {2, 1}});
    }
  }
}

TEST_CASE("Kernelet_OldestHasNoProfile_GoesFirst") {
  auto planner = std::make_shared<Told>();
  planner->schedules = {Together(7, 4, 9, 4)};
  Kernelet policy(planner);
  KerneletDevice device(1);
  device.Add({.id = 1, .ctas = 10});
  device.Add({.id = 2, .ctas = 10, .profile = 7});
  device.Add({.id = 3, .ctas = 10, .profile = 9});
  CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{1, 8}});
}

TEST_CASE("Kernelet_Arrival_PlansAgain_AndTheOldSharesDrain") {
  for (const bool replan : {true, false}) {
    auto planner = std::make_shared<Told>();
    planner->schedules = {Together(5, 6, 7, 2), Together(7, 4, 9, 4)};
    Kernelet policy(planner, {.replan_on_arrival = replan});
    KerneletDevice device(1);
    device.Add({.id = 1, .ctas = 50, .profile = 7});
    CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{1, 8}});  // alone
    device.Add({.id = 2, .ctas = 50, .profile = 9});
    CHECK(device.Pump(policy).empty());
    for (int i = 0; i < 4; ++i) {
      device.End(1);
      CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{2, 1}});
    }
    device.End(1);
    CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{1, 1}});  // 4 and 4
    device.Add({.id = 3, .ctas = 50, .profile = 5});                               // pays better beside 7
    device.End(2);
    CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{replan ? 3 : 2, 1}});
  }
}

TEST_CASE("Kernelet_OneHasStartedAll_PlansAgain_AndAKernelOfTheSameKindTakesItsPlace") {
  auto planner = std::make_shared<Told>();
  planner->schedules = {Together(7, 4, 9, 4)};
  Kernelet policy(planner, {.replan_on_arrival = false});
  KerneletDevice device(1);
  device.Add({.id = 1, .ctas = 5, .profile = 7});
  device.Add({.id = 2, .ctas = 50, .profile = 9});
  device.Add({.id = 3, .ctas = 50, .profile = 7});
  CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{1, 4}, {2, 4}});
  device.End(1);
  device.End(1);
  CHECK(device.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{1, 1}, {3, 1}});
  CHECK(planner->asked == 1);
  KerneletDevice other(1);
  other.Add({.id = 4, .ctas = 50, .profile = 9});
  CHECK(other.Pump(policy) == std::map<std::uint64_t, std::uint64_t>{{4, 8}});  // 7 is gone: alone
}

TEST_CASE("Kernelet_PlannerHasLearned_IsAskedAgain") {
  auto planner = std::make_shared<Told>();
  Kernelet policy(planner);
  KerneletDevice device(1);
  device.Add({.id = 1, .ctas = 4, .profile = 7});
  device.Add({.id = 2, .ctas = 50, .profile = 9});
  policy.Next(device.snapshot());
  policy.Next(device.snapshot());
  CHECK(planner->asked == 1);
  CHECK_FALSE(policy.co_schedule().has_value());
  planner->schedules = {Together(7, 4, 9, 4)};
  planner->version = 1;
  policy.Next(device.snapshot());
  CHECK(planner->asked == 2);
  CHECK(policy.co_schedule().has_value());
}

TEST_CASE("Kernelet_Patience_BoundsHowManyOvertakeTheOldest") {
  for (const std::uint32_t patience : {0u, 3u}) {
    auto planner = std::make_shared<Told>();
    planner->schedules = {Together(7, 4, 9, 4)};
    Kernelet policy(planner, {.patience = patience});
    KerneletDevice device(1);
    device.Add({.id = 1, .ctas = 8, .profile = 3});
    std::uint64_t next = 2;
    for (int i = 0; i < 40; ++i) {
      device.Add({.id = next++, .ctas = 8, .profile = 7});
      device.Add({.id = next++, .ctas = 8, .profile = 9});
      device.Pump(policy);
      if (device.resident(1)[0] > 0) break;
      for (std::uint64_t id = 2; id < next; ++id) {
        while (device.End(id)) {
        }
      }
    }
    CHECK((device.resident(1)[0] > 0) == (patience != 0));
    if (patience != 0) CHECK(next <= 12);
  }
}

TEST_CASE("Kernelet_Indivisible_GoesAsOneSlice") {
  auto planner = std::make_shared<Told>();
  planner->schedules = {Together(7, 4, 9, 4)};
  Kernelet policy(planner);
  std::vector<KernelView> kernels = {{.id = 1, .ctas = 30, .needs = {.warps = 1}, .profile = 7, .divisible = false},
                                     {.id = 2, .ctas = 30, .started = 4, .needs = {.warps = 1}, .profile = 9}};
  const std::vector<SmView> sms(1,
                                SmView{.free_ctas = 8, .free_warps = 48, .free_registers = 1, .free_shared_bytes = 1});
  const auto slice = policy.Next({.kernels = kernels, .sms = sms});
  REQUIRE(slice);
  CHECK(slice->kernel == 1);
  CHECK(slice->ctas == 30);
}

TEST_CASE("Kernelet_RandomArrivalsAndEnds_AllRun_WithinTheQuotas") {
  std::mt19937 random(11);
  for (int run = 0; run < 60; ++run) {
    auto planner = std::make_shared<Told>();
    for (std::uint64_t a = 1; a < 5; ++a) {
      for (std::uint64_t b = a + 1; b < 5; ++b) {
        const std::uint32_t ctas = 1 + static_cast<std::uint32_t>(random() % 7);
        if (random() % 3 != 0) planner->schedules.push_back(Together(a, ctas, b, 8 - ctas, 1 + random() % 20));
      }
    }
    std::ranges::shuffle(planner->schedules, random);
    const std::size_t sms = 1 + random() % 4;
    Kernelet policy(planner,
                    {.replan_on_arrival = random() % 2 == 0, .patience = static_cast<std::uint32_t>(random() % 3)});
    KerneletDevice device(sms);
    std::uint64_t next = 1;
    for (int step = 0; step < 400 || !device.kernels().empty(); ++step) {
      REQUIRE(step < 20000);
      if (step < 400 && random() % 4 == 0)
        device.Add({.id = next++, .ctas = 1 + random() % 60, .profile = random() % 5});
      device.Pump(policy);
      for (std::size_t tries = 0; tries < 2 * device.kernels().size(); ++tries) {
        if (device.End(device.kernels()[random() % device.kernels().size()].id, random() % sms)) break;
      }
      // Nothing is stuck: when all is idle, something starts.
      const bool idle =
          std::ranges::all_of(device.kernels(), [](const KernelView& k) { return k.started == k.finished; });
      if (idle && !device.kernels().empty()) CHECK_FALSE(device.Pump(policy).empty());
    }
    CHECK(device.kernels().empty());
  }
}

}  // namespace
}  // namespace gridloom::policy
