// Pipelines of kernels: how they are found, who runs beside whom, and on how many multiprocessors.
#include "scheduler/policy/dka.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "scheduler/policy/builtin.h"
#include "scheduler/policy/dka_guarded.h"

namespace gridloom::policy {
namespace {

/// One kernel of a data set: its blocks take `time` each.
struct Stage {
  std::uint64_t code = 0, ctas = 1, time = 100;
};

/// A device whose multiprocessors hold one block each, and streams of launches that are all there from the beginning.
class DkaDevice {
 public:
  DkaDevice(Policy& policy, std::uint32_t sms) : policy_(policy), sms_(sms) {}

  void Stream(std::vector<Stage> launches, std::uint32_t tenant = 0, double weight = 1) {
    streams_.push_back({.tenant = tenant, .weight = weight, .launches = std::move(launches)});
  }
  /// Cycles between the end of a launch and the next one of its stream.
  std::uint64_t gap = 0;

  struct Ran {
    std::size_t stream = 0, stage = 0;
    std::uint64_t begin = ~std::uint64_t{0}, end = 0;
    std::set<std::uint32_t> sms;
  };
  /// Runs everything; fails when it stands still.
  const std::vector<Ran>& Run() {
    for (std::size_t s = 0; s < streams_.size(); ++s) Ready(s);
    while (true) {
      Decide();
      std::uint64_t next = ~std::uint64_t{0};
      for (const Block& block : blocks_) next = std::min(next, block.end);
      for (const auto& [at, stream] : due_) next = std::min(next, at);
      if (const auto again = policy_.Again(); again && !kernels_.empty()) next = std::min(next, *again);
      if (next == ~std::uint64_t{0}) break;
      REQUIRE(next > now_);
      now_ = next;
      End();
    }
    REQUIRE(kernels_.empty());
    return ran_;
  }
  std::uint64_t now() const { return now_; }

 private:
  struct Line {
    std::uint32_t tenant = 0;
    double weight = 1;
    std::vector<Stage> launches;
    std::size_t next = 0;
  };
  struct Block {
    std::uint64_t kernel = 0, end = 0;
    std::uint32_t sm = 0;
  };

  void Ready(std::size_t stream) {
    Line& line = streams_[stream];
    if (line.next == line.launches.size()) return;
    const Stage& stage = line.launches[line.next];
    kernels_.push_back({.id = ran_.size(),
                        .stream = static_cast<std::uint32_t>(stream),
                        .ctas = stage.ctas,
                        .needs = {.warps = 1},
                        .tenant = line.tenant,
                        .weight = line.weight,
                        .code = stage.code,
                        .followed = line.next + 1 < line.launches.size()});
    residents_[ran_.size()].assign(sms_, 0);
    ran_.push_back({.stream = stream, .stage = line.next++, .sms = {}});
  }

  void Decide() {
    while (true) {
      std::vector<SmView> views(sms_, {.free_ctas = 1, .free_warps = 1});
      for (const Block& block : blocks_) views[block.sm] = {.resident_ctas = 1};
      for (KernelView& kernel : kernels_) kernel.resident = residents_[kernel.id];
      const auto slice = policy_.Next({.cycle = now_, .kernels = kernels_, .sms = views});
      if (!slice) return;
      const auto kernel = std::ranges::find(kernels_, slice->kernel, &KernelView::id);
      REQUIRE(kernel != kernels_.end());
      std::uint64_t placed = 0;
      for (std::uint32_t sm = 0; sm < sms_ && placed < slice->ctas && !kernel->all_started(); ++sm) {
        if (views[sm].free_ctas == 0 || (!slice->sms.empty() && !std::ranges::binary_search(slice->sms, sm))) continue;
        Ran& ran = ran_[kernel->id];
        blocks_.push_back(
            {.kernel = kernel->id, .end = now_ + streams_[ran.stream].launches[ran.stage].time, .sm = sm});
        ran.begin = std::min(ran.begin, now_);
        ran.sms.insert(sm);
        ++residents_[kernel->id][sm];
        ++kernel->started;
        ++placed;
      }
      if (placed == 0) return;
    }
  }

  void End() {
    std::erase_if(blocks_, [&](const Block& block) {
      if (block.end > now_) return false;
      const auto kernel = std::ranges::find(kernels_, block.kernel, &KernelView::id);
      --residents_[block.kernel][block.sm];
      if (++kernel->finished < kernel->ctas) return true;
      ran_[block.kernel].end = now_;
      due_.emplace(now_ + gap, ran_[block.kernel].stream);
      kernels_.erase(kernel);
      return true;
    });
    while (!due_.empty() && due_.begin()->first <= now_) {
      Ready(due_.begin()->second);
      due_.erase(due_.begin());
    }
  }

  Policy& policy_;
  const std::uint32_t sms_;
  std::uint64_t now_ = 0;
  std::vector<Line> streams_;
  std::vector<KernelView> kernels_;
  std::map<std::uint64_t, std::vector<std::uint16_t>> residents_;
  std::vector<Block> blocks_;
  std::multimap<std::uint64_t, std::size_t> due_;
  std::vector<Ran> ran_;
};

const DkaDevice::Ran& Of(const std::vector<DkaDevice::Ran>& ran, std::size_t stream, std::size_t stage) {
  return *std::ranges::find_if(ran,
                               [&](const DkaDevice::Ran& one) { return one.stream == stream && one.stage == stage; });
}

TEST_CASE("Dka_RunsTheFirstDataSetAlone_AndThenAStageOfOneBesideTheStageBeforeOfTheNext") {
  Dka policy;
  DkaDevice device(policy, 8);
  for (int set = 0; set < 4; ++set) device.Stream({{1, 24}, {2, 8}});
  const auto& ran = device.Run();
  CHECK(Of(ran, 0, 0).end == 300);
  CHECK(Of(ran, 0, 1).begin == 300);
  CHECK(Of(ran, 0, 1).end == 400);
  // The second one's first kernel has nothing to run beside.
  CHECK(Of(ran, 1, 0).begin == 400);
  CHECK(Of(ran, 1, 0).sms.size() == 8);
  // A kernel with a quarter of all blocks gets a quarter of the multiprocessors.
  for (std::size_t set = 1; set < 3; ++set) {
    const DkaDevice::Ran &late = Of(ran, set, 1), &early = Of(ran, set + 1, 0);
    CHECK(late.begin == early.begin);
    CHECK(late.sms == std::set<std::uint32_t>{0, 1});
    CHECK(early.sms == std::set<std::uint32_t>{2, 3, 4, 5, 6, 7});
    CHECK(late.end == early.end);
  }
  CHECK(Of(ran, 3, 1).sms.size() == 8);
}

TEST_CASE("Dka_WithThreeStages_RunsTheFirstAndSecond_SecondAndThird_ThirdAndFirst") {
  auto log = std::make_shared<std::vector<DkaStep>>();
  Dka policy({.log = log});
  DkaDevice device(policy, 6);
  for (int set = 0; set < 5; ++set) device.Stream({{1, 6}, {2, 6}, {3, 6}});
  device.Run();
  std::vector<std::vector<std::size_t>> stages;
  for (const DkaStep& step : *log) {
    stages.emplace_back();
    for (const DkaStep::Kernel& kernel : step.kernels) stages.back().push_back(kernel.stage);
  }
  CHECK(stages ==
        std::vector<std::vector<std::size_t>>{{0}, {1}, {2}, {0}, {1, 0}, {2, 1}, {2, 0}, {1, 0}, {2, 1}, {2}});
}

TEST_CASE("Dka_OfThreeAtOnce_FindsTheirShares") {
  auto log = std::make_shared<std::vector<DkaStep>>();
  Dka policy({.together = 3, .log = log});
  DkaDevice device(policy, 12);
  for (int set = 0; set < 9; ++set) device.Stream({{1, 24}, {2, 48}, {3, 72}});
  device.Run();
  const auto three = std::ranges::find_if(*log, [](const DkaStep& step) { return step.kernels.size() == 3; });
  REQUIRE(three != log->end());
  CHECK(three->kernels[0].sms == 6);  // the third kernel
  CHECK(three->kernels[1].sms == 4);
  CHECK(three->kernels[2].sms == 2);
  CHECK(three->kernels[0].took == three->kernels[2].took);
}

/// What each kernel is said to take: with a third of the multiprocessors as much as with all.
class Saturating final : public ScalingModel {
 public:
  std::optional<double> Time(std::uint64_t, std::uint32_t sms) const override { return 1.0 / std::min(sms, 4u); }
};

TEST_CASE("Dka_WithAModel_BeginsAtWhatThatExpects") {
  auto log = std::make_shared<std::vector<DkaStep>>();
  Dka policy({.log = log}, std::make_shared<Saturating>(), "dka-predicted");
  DkaDevice device(policy, 12);
  for (int set = 0; set < 4; ++set) device.Stream({{1, 12}, {2, 24}});
  device.Run();
  const auto two = std::ranges::find_if(*log, [](const DkaStep& step) { return step.kernels.size() == 2; });
  REQUIRE(two != log->end());
  CHECK(two->kernels[0].sms == 4);  // straight lines give it 8
}

TEST_CASE("Dka_WithSharesForMore_RunsThreeAtOnce") {
  auto log = std::make_shared<std::vector<DkaStep>>();
  Dka policy({.together = 3, .fixed = {{{1, 0}, {3, 3}}, {{2, 1, 0}, {1, 2, 3}}, {{2, 1}, {3, 3}}}, .log = log});
  DkaDevice device(policy, 6);
  for (int set = 0; set < 4; ++set) device.Stream({{1, 6}, {2, 6}, {3, 6}});
  device.Run();
  REQUIRE(log->size() == 6);
  CHECK(log->at(1).kernels.size() == 2);
  REQUIRE(log->at(2).kernels.size() == 3);
  CHECK(log->at(2).kernels[0].sms == 1);
  CHECK(log->at(2).kernels[2].sms == 3);
  CHECK(log->at(5).kernels.size() == 1);
}

TEST_CASE("Dka_LeavesWhatIsNoPipeline_ToTheOrderInWhichItCame") {
  for (const bool one_stream : {false, true}) {
    Dka policy;
    auto leftover = MakePolicy("leftover");
    DkaDevice device(policy, 4), other(**leftover, 4);
    for (DkaDevice* const one : {&device, &other}) {
      if (one_stream) {
        one->Stream({{1, 5}, {2, 3}, {1, 5}, {2, 3}});
      } else {
        // No two begin with the same kernel, or nothing follows.
        for (std::uint64_t code = 1; code < 5; ++code) one->Stream({{code, 5}, {9, 3}});
        one->Stream({{7, 2}});
        one->Stream({{7, 2}});
        one->Stream({{0, 2}, {0, 2}});
        one->Stream({{0, 2}, {0, 2}});
      }
    }
    const auto &ran = device.Run(), &expected = other.Run();
    REQUIRE(ran.size() == expected.size());
    for (std::size_t i = 0; i < ran.size(); ++i) {
      CHECK(ran[i].begin == expected[i].begin);
      CHECK(ran[i].sms == expected[i].sms);
    }
  }
}

TEST_CASE("Dka_WaitsForTheNextKernelOfADataSet_ButNotLong") {
  Dka policy;
  DkaDevice device(policy, 4);
  device.gap = 10;
  for (int set = 0; set < 3; ++set) device.Stream({{1, 4}, {2, 4}});
  const auto& ran = device.Run();
  CHECK(Of(ran, 0, 1).begin == 110);
  CHECK(Of(ran, 1, 1).begin == Of(ran, 2, 0).begin);

  Dka patient;
  DkaDevice slow(patient, 4);
  slow.gap = 1000;
  for (int set = 0; set < 3; ++set) slow.Stream({{1, 4}, {2, 4}});
  const auto& late = slow.Run();
  // A quarter of the step of 100 cycles.
  CHECK(Of(late, 1, 0).begin == 125);
  CHECK(slow.now() < 3000);
}

TEST_CASE("Dka_OfStreamsThatAreUsedAgain_AndThatEndEarly_RunsAll") {
  Dka policy;
  DkaDevice device(policy, 4);
  device.Stream({{1, 4}, {2, 4}, {1, 4}, {2, 4}, {1, 4}, {2, 4}});
  device.Stream({{1, 4}, {2, 4}, {1, 4}});
  device.Stream({{1, 4}});
  device.Stream({{1, 4}, {3, 4}});  // another second kernel
  device.Stream({{1, 4}, {2, 4}, {5, 4}});
  CHECK(device.Run().size() == 15);
}

TEST_CASE("Dka_OfOneMultiprocessor_RunsOneKernelAfterTheOther") {
  Dka policy;
  DkaDevice device(policy, 1);
  for (int set = 0; set < 4; ++set) device.Stream({{1, 2}, {2, 3}});
  const auto& ran = device.Run();
  CHECK(device.now() == 100 * 4 * 5);
  CHECK(ran.size() == 8);
}

/// Blocks times cycles that a stream's launches had done by then; those of launches that were on their way are not
/// counted.
double WorkUntil(const std::vector<DkaDevice::Ran>& ran, std::size_t stream, std::uint64_t cycle, double of_each) {
  double work = 0;
  for (const DkaDevice::Ran& one : ran) work += one.stream == stream && one.end != 0 && one.end <= cycle ? of_each : 0;
  return work;
}

std::uint64_t LastEnd(const std::vector<DkaDevice::Ran>& ran, std::size_t stream) {
  std::uint64_t last = 0;
  for (const DkaDevice::Ran& one : ran) last = std::max(last, one.stream == stream ? one.end : 0);
  return last;
}

TEST_CASE("Dka_OfTwoTenants_GivesEachAsManyAsLetBothEndTogether") {
  Dka policy;
  DkaDevice device(policy, 8);
  device.Stream(std::vector<Stage>(20, {1, 24}), 1);
  device.Stream(std::vector<Stage>(20, {2, 8}), 2);
  const auto& ran = device.Run();
  // A quarter of all blocks gets a quarter of the multiprocessors; the first ones were alone, to be measured.
  std::size_t together = 0;
  for (const DkaDevice::Ran& one : ran) {
    if (one.stream != 0) continue;
    const auto beside = std::ranges::find_if(
        ran, [&](const DkaDevice::Ran& other) { return other.stream == 1 && other.begin == one.begin; });
    if (beside == ran.end()) continue;
    CHECK(one.sms.size() == 6);
    CHECK(beside->sms.size() == 2);
    CHECK(one.end == beside->end);
    ++together;
  }
  CHECK(together > 5);
}

TEST_CASE("Dka_OfTwoTenants_KeepsTheirWeights") {
  for (const double weight : {1.0, 3.0}) {
    Dka policy;
    DkaDevice device(policy, 8);
    device.Stream(std::vector<Stage>(120, {1, 24}), 1, weight);
    device.Stream(std::vector<Stage>(120, {2, 24}), 2);
    const auto& ran = device.Run();
    const std::uint64_t first = LastEnd(ran, 0);
    const double heavy = WorkUntil(ran, 0, first, 24 * 100), light = WorkUntil(ran, 1, first, 24 * 100);
    INFO("weight " << weight << ": " << heavy << " and " << light);
    CHECK(heavy / light > weight * 0.9);
    CHECK(heavy / light < weight * 1.1);
  }
}

TEST_CASE("Dka_OfTenantsWithShortAndLongKernels_LeavesNoRoomEmpty") {
  Dka policy;
  DkaDevice device(policy, 8);
  device.Stream(std::vector<Stage>(400, {1, 4}), 1);
  device.Stream(std::vector<Stage>(20, {2, 80}), 2);
  const auto& ran = device.Run();
  const std::uint64_t first = std::min(LastEnd(ran, 0), LastEnd(ran, 1));
  const double done = WorkUntil(ran, 0, first, 4 * 100) + WorkUntil(ran, 1, first, 80 * 100);
  INFO(done << " in " << first << " cycles");
  CHECK(done > 0.85 * 8 * static_cast<double>(first));
}

TEST_CASE("Dka_OfATenantThatComesLate_StartsWithTheOthers") {
  // Who was not there has no claim on the time before.
  Dka policy;
  DkaDevice device(policy, 8);
  device.Stream(std::vector<Stage>(60, {1, 24}), 1);
  std::vector<Stage> late(1, {7, 8, 6000});  // keeps it busy with one long kernel
  late.insert(late.end(), 60, {2, 24});
  device.Stream(late, 2);
  device.Stream(std::vector<Stage>(60, {3, 24}), 3);
  CHECK(device.Run().size() == 181);
}

TEST_CASE("GuardedDka_OfLightKernels_RunsAsManyAsThereIsRoomFor") {
  GuardedDka policy;
  DkaDevice device(policy, 8);
  for (int set = 0; set < 4; ++set) device.Stream({{1, 2}, {2, 2}});
  const auto& ran = device.Run();
  CHECK(device.now() == 200);
  CHECK(Of(ran, 3, 0).begin == 0);
}

TEST_CASE("GuardedDka_WhereSplitsDoNotPay_FillsTheRoomThatIsLeft") {
  // Waves of 9 blocks on 8 multiprocessors: one after the other leaves 7 of 16 places empty, and so does any split of
  // two such kernels.
  const auto run = [](std::unique_ptr<Policy> policy, std::size_t sets) {
    DkaDevice device(*policy, 8);
    for (std::size_t set = 0; set < sets; ++set) device.Stream({{1, 9}, {2, 9}});
    device.Run();
    return device.now();
  };
  const std::uint64_t before = run(std::make_unique<GuardedDka>(), 20), after = run(std::make_unique<GuardedDka>(), 40);
  const std::uint64_t leftover = run(*MakePolicy("leftover"), 40) - run(*MakePolicy("leftover"), 20);
  CHECK(after - before <= leftover * 1.01);
}

TEST_CASE("Pipelines_OfLaunchesWhoseNextOnesNeverCome_AreForgottenInTheEnd") {
  Pipelines pipelines;
  for (std::uint32_t stream = 1; stream <= 10'000; ++stream) {
    const KernelView kernel{.id = stream, .stream = stream, .ctas = 1, .code = 7, .followed = true};
    pipelines.See({.cycle = 1, .kernels = {&kernel, 1}, .sms = {}});
    pipelines.See({});
  }
  CHECK(pipelines.sets().size() <= 4096);
  CHECK(pipelines.sets().back().stream == 10'000);
}

TEST_CASE("Dka_OfRandomPrograms_StartsEveryBlockAndNeverStandsStill") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 600; ++round) {
    INFO("round " << round);
    auto policy = *MakePolicy(round % 2 == 0 ? "dka" : "dka-guarded");
    if (round % 5 == 0)
      policy = std::make_unique<Dka>(DkaOptions{.together = static_cast<std::uint32_t>(2 + random() % 4)});
    DkaDevice device(*policy, static_cast<std::uint32_t>(1 + random() % 9));
    device.gap = random() % 3 * 40;
    std::vector<Stage> stages;
    for (std::uint64_t i = 1 + random() % 5; i > 0; --i)
      stages.push_back({1 + random() % 6, 1 + random() % 20, 1 + random() % 300});
    std::size_t launches = 0;
    for (std::uint64_t i = 1 + random() % 12; i > 0; --i) {
      std::vector<Stage> own = stages;
      if (random() % 4 == 0) own.resize(1 + random() % own.size());
      if (random() % 4 == 0) own.insert(own.end(), stages.begin(), stages.end());
      if (random() % 6 == 0) own[random() % own.size()].code = 1 + random() % 8;
      launches += own.size();
      device.Stream(std::move(own), static_cast<std::uint32_t>(random() % 3), static_cast<double>(1 + random() % 4));
    }
    CHECK(device.Run().size() == launches);
  }
}

}  // namespace
}  // namespace gridloom::policy
