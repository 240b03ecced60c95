#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>

#include "scheduler/policy/builtin.h"
#include "scheduler/policy/fair.h"
#include "scheduler/policy/limited.h"
#include "scheduler/policy/tenant_service.h"
#include "tests/scheduler/policy/no_pairs.h"

namespace gridloom::policy {
namespace {

std::optional<Slice> Ask(std::string_view name, const std::vector<KernelView>& kernels) {
  const std::vector<SmView> sms(
      2, SmView{.free_ctas = 8, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152});
  return MakePolicy(name, NoPairs()).value()->Next({.cycle = 5, .kernels = kernels, .sms = sms});
}

TEST_CASE("MakePolicy_KnowsEveryNameAndNoOther") {
  const auto names = PolicyNames();
  CHECK(std::ranges::is_sorted(names));
  for (const std::string_view name : names) {
    const auto policy = MakePolicy(name, NoPairs());
    REQUIRE(policy.ok());
    CHECK((*policy)->name() == name);
  }
  CHECK_FALSE(MakePolicy("nothing").ok());
}

TEST_CASE("MakePolicy_OfAMisspeltName_NamesTheNearest") {
  struct Row {
    std::string_view given, nearest;
  };
  for (const auto& [given, nearest] :
       {Row{"kernlet", "kernelet"}, Row{"left-over", "leftover"}, Row{"kernelet-probin", "kernelet-probing"}}) {
    const std::string message = MakePolicy(given).error().message;
    CHECK(message.starts_with("no policy '" + std::string(given) + "'; there are crcs-fifo, crcs-ppcs, "));
    CHECK(message.ends_with("; did you mean '" + std::string(nearest) + "'?"));
  }
  CHECK(MakePolicy("round-robin").error().message.find("did you mean") == std::string::npos);
}

TEST_CASE("Policies_EachSaysWhatItIs") {
  for (const PolicyInfo& policy : Policies()) {
    CHECK_FALSE(policy.summary.empty());
    CHECK(policy.summary.find('\n') == std::string_view::npos);
    CHECK(*FindPolicy(policy.name) == &policy);
  }
}

TEST_CASE("Policies_EachStandsInTheListOfTheDocs") {
  std::ifstream file("docs/commands.md");
  const std::string page{std::istreambuf_iterator(file), {}};
  for (const PolicyInfo& policy : Policies()) {
    INFO(policy.name);
    CHECK(page.find("| `" + std::string(policy.name) + "` | " + std::string(policy.summary)) != std::string::npos);
  }
}

/// What each policy says when it is given nothing, or only a part of what it needs.
TEST_CASE("MakePolicy_WithoutWhatItNeeds_SaysWhatIsMissingAndHowToGetIt") {
  const PolicyInputs planner{.planner = NoPairs().planner}, learning{.learning_planner = NoPairs().learning_planner};
  const std::string profiles =
      "profiles of kernels: give a file of them with --profiles (`gridloom replay --write-profiles FILE TRACE` makes "
      "one)";
  const std::string time = "simulated time, in which it measures pairs of kernels: use --timing";
  struct Row {
    std::string_view name;
    const PolicyInputs& given;
    std::vector<std::string> missing;
  };
  const PolicyInputs nothing{}, all = NoPairs();
  const Row rows[] = {
      {"fair", nothing, {}},
      {"leftover", nothing, {}},
      {"priority", nothing, {}},
      {"serial", nothing, {}},
      {"kernelet", nothing, {profiles}},
      {"kernelet", planner, {}},
      {"kernelet", learning, {profiles}},
      {"kernelet-probing", nothing, {profiles, time}},
      {"kernelet-probing", planner, {time}},
      {"kernelet-probing", learning, {profiles}},
      {"kernelet-probing", all, {}},
  };
  for (const auto& [name, given, missing] : rows) {
    INFO(name);
    const auto policy = MakePolicy(name, given);
    REQUIRE(policy.ok() == missing.empty());
    if (policy.ok()) continue;
    CHECK(policy.error().message.starts_with("policy " + std::string(name) + " needs "));
    for (const std::string& what : {profiles, time}) {
      const bool said = policy.error().message.find(what) != std::string::npos;
      CHECK(said == (std::ranges::find(missing, what) != missing.end()));
    }
  }
}

TEST_CASE("Needs_OfSeveral_HaveEachAndNoOther") {
  constexpr Needs none, one{Need::kLearning}, both{Need::kProfiles, Need::kLearning};
  STATIC_REQUIRE(none.empty());
  STATIC_REQUIRE((one.Has(Need::kLearning) && !one.Has(Need::kProfiles) && !one.empty()));
  STATIC_REQUIRE((both.Has(Need::kLearning) && both.Has(Need::kProfiles)));
}

TEST_CASE("Next_NothingReady_IsNothing") {
  for (const std::string_view name : PolicyNames()) CHECK_FALSE(Ask(name, {}).has_value());
}

TEST_CASE("Next_FirstKernelHasBlocksLeft_IsThoseBlocks") {
  for (const std::string_view name : PolicyNames()) {
    const auto slice = Ask(name, {{.id = 7, .ctas = 10, .started = 4}, {.id = 8, .ctas = 3}});
    REQUIRE(slice.has_value());
    CHECK(slice->kernel == 7);
    CHECK(slice->ctas == 6);
  }
}

TEST_CASE("Next_FirstKernelHasStartedAll_SerialWaitsAndLeftoverGoesOn") {
  const std::vector<KernelView> kernels = {{.id = 7, .ctas = 10, .started = 10, .finished = 9}, {.id = 8, .ctas = 3}};
  CHECK_FALSE(Ask("serial", kernels).has_value());
  const auto slice = Ask("leftover", kernels);
  REQUIRE(slice.has_value());
  CHECK(slice->kernel == 8);
  CHECK(slice->ctas == 3);
}

TEST_CASE("Next_Priority_MoreUrgentKernelGoesFirst") {
  const std::vector<KernelView> kernels = {
      {.id = 7, .ctas = 10}, {.id = 8, .ctas = 3, .priority = 2}, {.id = 9, .ctas = 4, .priority = 2}};
  const auto slice = Ask("priority", kernels);
  REQUIRE(slice.has_value());
  CHECK(slice->kernel == 8);
  CHECK(slice->ctas == 3);
}

/// A device for 16 blocks of one kind. Tenants with endless kernels; `seconds[t]` is how long a block of tenant t
/// takes.
struct FairDevice {
  std::unique_ptr<Policy> policy = MakePolicy("fair").value();
  std::vector<KernelView> kernels;
  std::uint64_t free = 16, now = 0;
  std::multimap<std::uint64_t, std::size_t> ends;
  std::vector<double> served;

  FairDevice(std::vector<double> weights) : served(weights.size()) {
    for (std::size_t t = 0; t < weights.size(); ++t) {
      kernels.push_back(
          {.id = t, .ctas = ~std::uint64_t{0}, .tenant = static_cast<std::uint32_t>(t + 1), .weight = weights[t]});
    }
  }

  /// The tenants with a `true` have work.
  void Run(std::uint64_t until, const std::vector<std::uint64_t>& durations, const std::vector<bool>& active) {
    while (now < until) {
      while (free > 0) {
        std::vector<KernelView> ready;
        for (const KernelView& kernel : kernels) {
          if (active[kernel.id] || kernel.started > kernel.finished) ready.push_back(kernel);
          if (!ready.empty() && ready.back().id == kernel.id && !active[kernel.id]) ready.back().ctas = kernel.started;
        }
        const std::vector<SmView> sms(1, SmView{.free_ctas = static_cast<std::uint32_t>(free)});
        const auto slice = policy->Next({.cycle = now, .kernels = ready, .sms = sms});
        if (!slice) break;
        REQUIRE(active[slice->kernel]);
        for (std::uint64_t i = 0; i < slice->ctas && free > 0; ++i, --free) {
          ++kernels[slice->kernel].started;
          ends.emplace(now + durations[slice->kernel], slice->kernel);
        }
      }
      REQUIRE_FALSE(ends.empty());
      now = ends.begin()->first;
      const std::size_t kernel = ends.begin()->second;
      ends.erase(ends.begin());
      ++free;
      ++kernels[kernel].finished;
      served[kernel] += static_cast<double>(durations[kernel]);
    }
  }

  double ShareOf(std::size_t tenant) const {
    return served[tenant] / std::accumulate(served.begin(), served.end(), 0.0);
  }
};

TEST_CASE("Fair_WeightsGiveShares_HoweverLongABlockTakes") {
  FairDevice device({1, 3});
  device.Run(100'000, {100, 7}, {true, true});
  CHECK(device.ShareOf(0) == Approx(0.25).margin(0.01));
}

TEST_CASE("Fair_OneTenantAlone_HasTheDevice") {
  FairDevice device({1, 3});
  device.Run(10'000, {100, 7}, {true, false});
  CHECK(device.ShareOf(0) == 1);
  CHECK(device.free <= 1);
}

TEST_CASE("Fair_ATenantThatWasIdle_SavesUpNothing") {
  FairDevice device({1, 1});
  device.Run(100'000, {10, 10}, {true, false});
  device.served = {0, 0};
  device.Run(110'000, {10, 10}, {true, true});
  CHECK(device.ShareOf(0) == Approx(0.5).margin(0.01));
}

/// Two tenants that launch again some time after their last launch has ended, on a device that one launch fills.
struct TwoLoops {
  Policy& policy;
  double weights[2] = {1, 1};
  std::uint64_t duration = 1;
  /// How long each stays away after its launch that ended then.
  std::function<std::uint64_t(std::size_t tenant, std::uint64_t ended)> pause;
  /// While another one's launch runs it does not come back: its host finds no processor.
  bool needs_processor = false;

  double served[2] = {};          ///< time that its launches took, or the device was kept free for it
  std::uint64_t longest[2] = {};  ///< that a launch of its waited

  void Run(std::uint64_t until) {
    constexpr std::size_t kNone = 2;
    std::uint64_t next_id = 1, busy_until = 0;
    std::uint64_t comes[2] = {1, 1};  // when each launches next, unless it has a launch
    std::uint64_t came[2] = {};
    std::optional<KernelView> kernels[2];
    std::size_t runs = kNone;
    for (std::uint64_t now = 1; now < until;) {
      for (std::size_t t = 0; t < 2; ++t) {
        if (kernels[t] || comes[t] > now || (needs_processor && runs != kNone)) continue;
        kernels[t] =
            KernelView{.id = next_id++, .ctas = 1, .tenant = static_cast<std::uint32_t>(t), .weight = weights[t]};
        kernels[t]->occupied = 0;
        came[t] = now;
      }
      std::vector<KernelView> ready;
      for (const auto& kernel : kernels) {
        if (kernel) ready.push_back(*kernel);
      }
      const std::vector<SmView> sms(1, SmView{.free_ctas = runs == kNone ? 1u : 0u});
      const auto slice = policy.Next({.cycle = now, .kernels = ready, .sms = sms});
      std::uint64_t next = ~std::uint64_t{0};
      if (slice && runs == kNone) {
        runs = kernels[0] && kernels[0]->id == slice->kernel ? 0 : 1;
        kernels[runs]->started = 1;
        kernels[runs]->occupied = 1;
        longest[runs] = std::max(longest[runs], now - came[runs]);
        busy_until = now + duration;
        continue;
      }
      if (runs != kNone) next = busy_until;
      else if (const auto again = policy.Again()) next = *again;
      for (std::size_t t = 0; t < 2; ++t) {
        if (!kernels[t] && comes[t] > now) next = std::min(next, comes[t]);
      }
      REQUIRE(next > now);
      REQUIRE(next != ~std::uint64_t{0});
      for (const std::uint32_t tenant : policy.KeptFor())
        served[tenant] += runs == kNone ? static_cast<double>(next - now) : 0;
      now = next;
      if (runs != kNone && now == busy_until) {
        served[runs] += static_cast<double>(duration);
        comes[runs] = now + pause(runs, now);
        kernels[runs].reset();
        runs = kNone;
      }
    }
    for (std::size_t t = 0; t < 2; ++t)
      longest[t] = std::max(longest[t], kernels[t] && t != runs ? until - came[t] : 0);
  }
  double FirstShare() const { return served[0] / (served[0] + served[1]); }
};

double ShareInClosedLoop(Policy& policy, double first_weight, std::uint64_t duration, std::uint64_t pause) {
  TwoLoops loops{
      .policy = policy, .weights = {first_weight, 1}, .duration = duration, .pause = [=](auto...) { return pause; }};
  loops.Run(1'000'000);
  return loops.FirstShare();
}

TEST_CASE("Fair_TenantsThatWaitForEachLaunch_GetTheirSharesWhereItWaitsForThem") {
  const std::uint64_t pause = GENERATE(3, 20, 45);
  const std::uint64_t duration = GENERATE(20, 100, 1000);
  const double weight = GENERATE(1.0, 3.0, 9.0);
  INFO(pause << " " << duration << " " << weight);
  Fair waits(100), does_not(0);
  CHECK(ShareInClosedLoop(waits, weight, duration, pause) == Approx(weight / (weight + 1)).margin(0.05));
  if (duration > pause) CHECK(ShareInClosedLoop(does_not, weight, duration, pause) == Approx(0.5).margin(0.01));
}

TEST_CASE("Fair_TenantsWhoseHostsFindNoProcessorWhileOthersRun_GetTheirShares") {
  const double weight = GENERATE(1.0, 3.0, 7.0);
  const std::uint64_t pause = GENERATE(5, 40), duration = GENERATE(300, 3000);
  INFO(weight << " " << pause << " " << duration);
  Fair fair(100);
  TwoLoops loops{.policy = fair,
                 .weights = {weight, 1},
                 .duration = duration,
                 .pause = [&](std::size_t,
                              std::uint64_t ended) { return ended < 50'000 ? 5000 : pause; },  // busy at the beginning
                 .needs_processor = true};
  loops.Run(2'000'000);
  CHECK(loops.FirstShare() == Approx(weight / (weight + 1)).margin(0.05));
}

TEST_CASE("Fair_TenantWithLongLaunches_IsWaitedForAsLongAsThatCostsLittle") {
  Fair fair(100);
  const std::uint64_t duration = 4000;
  const auto [pause, share] = GENERATE(std::pair(400, 0.75), std::pair(1200, 0.5));  // an eighth is 500
  TwoLoops loops{
      .policy = fair, .weights = {3, 1}, .duration = duration, .pause = [&, pause = pause](auto...) { return pause; }};
  loops.Run(4'000'000);
  CHECK(loops.FirstShare() == Approx(share).margin(0.05));
}

TEST_CASE("Fair_TenantThatWasAwayForLong_DoesNotKeepOthersWaiting") {
  const double weight = GENERATE(0.5, 1.0, 3.0, 100.0);
  const std::uint64_t wait = GENERATE(0, 100, 2000), pause = GENERATE(0, 10, 90, 1500);
  INFO(weight << " " << wait << " " << pause);
  constexpr std::uint64_t kDuration = 100;
  Fair fair(wait);
  // The first one has had a launch, is away for long, and then comes and goes.
  bool away = true;
  TwoLoops loops{
      .policy = fair, .weights = {weight, 1}, .duration = kDuration, .pause = [&](std::size_t tenant, std::uint64_t) {
        return tenant == 0 && std::exchange(away, false) ? std::uint64_t{3'000'000} : pause;
      }};
  loops.Run(10'000'000);
  // As much as the first one is due while the other one runs for once, and what is kept free for it meanwhile.
  CHECK(static_cast<double>(loops.longest[1]) <
        3 * (weight + 1) * static_cast<double>(kDuration + std::min(wait, pause) + wait));
}

TEST_CASE("TenantService_OfATenantThatWasAway_IsLevelAsSoonAsItIsOwedNothing") {
  const double weight = GENERATE(0.5, 1.0, 3.0, 100.0);
  const std::vector<SmView> sms(1, SmView{.free_ctas = 1});
  TenantService service;
  std::uint64_t now = 1;
  const auto see = [&](const std::vector<std::uint32_t>& there, std::uint32_t runs) {
    std::vector<KernelView> kernels;
    for (const std::uint32_t tenant : there) {
      kernels.push_back({.id = tenant, .ctas = 9, .started = runs == tenant ? 1u : 0u, .tenant = tenant});
      kernels.back().weight = tenant == 1 ? weight : 1;
      kernels.back().occupied = runs == tenant ? 1 : 0;
    }
    service.See({.cycle = now, .kernels = kernels, .sms = sms});
    now += 100;
  };
  see({1, 2, 3}, 1);
  see({1, 2, 3}, 2);
  see({2, 3}, 2);  // the first one has had more than the third
  for (int i = 0; i < 10'000; ++i) see({2}, 2);
  see({1, 2}, 2);
  CHECK(service.service(2) - service.service(1) <= 100);
}

/// What a tenant that always wants the device has of the time beside one of its weight that takes it for `duration` at
/// a time and comes back after each of the pauses in turn. Slices of the former take `slice`.
double PartOfTheSteadyOne(std::uint64_t duration, const std::vector<std::uint64_t>& pauses, std::uint64_t slice) {
  constexpr std::uint64_t kUntil = 1'000'000;
  Fair fair(100);
  KernelView steady{.id = 1, .ctas = ~std::uint64_t{0}, .tenant = 1}, restless{.id = 2, .ctas = 1, .tenant = 2};
  steady.occupied = restless.occupied = 0;
  bool is_there = false;
  std::uint64_t comes = 1, busy_until = 0, had = 0, visits = 0;
  KernelView* runs = nullptr;
  for (std::uint64_t now = 1; now < kUntil;) {
    if (runs != nullptr && now == busy_until) {
      runs->finished = runs->started;
      runs->occupied = 0;
      if (runs == &steady) had += slice;
      if (runs == &restless) {
        is_there = false;
        comes = now + pauses[visits++ % pauses.size()];
        restless = {.id = restless.id + 1, .ctas = 1, .tenant = 2};
        restless.occupied = 0;
      }
      runs = nullptr;
    }
    if (!is_there && comes <= now) is_there = true;
    std::vector<KernelView> kernels{steady};
    if (is_there) kernels.push_back(restless);
    const std::vector<SmView> sms(1, SmView{.free_ctas = runs == nullptr ? 1u : 0u});
    const auto chosen = fair.Next({.cycle = now, .kernels = kernels, .sms = sms});
    if (chosen && runs == nullptr) {
      runs = chosen->kernel == steady.id ? &steady : &restless;
      ++runs->started;
      runs->occupied = 1;
      busy_until = now + (runs == &steady ? slice : duration);
      continue;
    }
    std::uint64_t next = runs != nullptr ? busy_until : fair.Again().value_or(~std::uint64_t{0});
    if (!is_there) next = std::min(next, comes);
    REQUIRE((next > now && next != ~std::uint64_t{0}));
    now = next;
  }
  return static_cast<double>(had) / kUntil;
}

TEST_CASE("Fair_TenantThatComesAndGoes_CostsAnotherNoMoreThanItsOwnShare") {
  const std::uint64_t duration = GENERATE(1, 5, 20, 100), slice = GENERATE(10, 100, 1000);
  const std::vector<std::uint64_t> pauses =
      GENERATE(std::vector<std::uint64_t>{1}, std::vector<std::uint64_t>{20}, std::vector<std::uint64_t>{49},
               std::vector<std::uint64_t>{51}, std::vector<std::uint64_t>{1, 99},
               std::vector<std::uint64_t>{1, 1, 1, 800}, std::vector<std::uint64_t>{30, 60, 2, 70});
  INFO(duration << " " << slice << " " << pauses.front());
  CHECK(PartOfTheSteadyOne(duration, pauses, slice) > 0.49);
}

TEST_CASE("Fair_TenantThatStaysAwayLonger_IsNotWaitedFor") {
  Fair fair(100);
  const std::vector<SmView> sms(1, SmView{.free_ctas = 1});
  std::uint64_t now = 1, waited = 0;
  // Tenant 1 runs for 10, stays away for 1000 each time; tenant 2 always has something to run.
  KernelView other{.id = 1, .ctas = 1'000'000, .tenant = 2};
  for (std::uint64_t round = 0; round < 20; ++round) {
    KernelView mine{.id = 2 + round, .ctas = 1, .started = 1, .tenant = 1, .weight = 100};
    mine.occupied = 1;
    other.occupied = 0;
    static_cast<void>(fair.Next({.cycle = now, .kernels = std::vector{other, mine}, .sms = sms}));
    now += 10;
    std::uint64_t idle = 0;
    while (!fair.Next({.cycle = now, .kernels = std::vector{other}, .sms = sms})) {
      REQUIRE(fair.Again());
      idle += *fair.Again() - now;
      now = *fair.Again();
    }
    other.occupied = 1;
    other.finished = other.started;
    ++other.started;
    static_cast<void>(fair.Next({.cycle = now, .kernels = std::vector{other}, .sms = sms}));
    now += 1000;
    if (round > 5) waited += idle;
  }
  CHECK(waited <= 300);  // of 14,000: it is tried now and then
}

/// A device with room for one block of each kernel, endless kernels of blocks that take `duration`.
TEST_CASE("Limited_Caps_AreKept_AndWhoOwesIsAskedAgainInTime") {
  constexpr std::uint64_t kUntil = 1'000'000, kDuration = 50;
  const double caps[2] = {0.2, 0.5};
  Limited limited(MakePolicy("leftover").value(), 1000,
                  [&](std::uint32_t tenant) { return Limited::Limits{.cap = caps[tenant]}; });
  std::vector<KernelView> kernels;
  std::uint64_t ends[2] = {};
  double had[2] = {};
  for (std::uint32_t t = 0; t < 2; ++t) kernels.push_back({.id = t, .ctas = ~std::uint64_t{0}, .tenant = t});
  const std::vector<SmView> sms(1, SmView{.free_ctas = 1});
  for (std::uint64_t now = 1; now < kUntil;) {
    const auto slice = limited.Next({.cycle = now, .kernels = kernels, .sms = sms});
    std::uint64_t next = ~std::uint64_t{0};
    if (slice && kernels[slice->kernel].started == kernels[slice->kernel].finished) {
      ++kernels[slice->kernel].started;
      ends[slice->kernel] = now + kDuration;
      continue;
    }
    if (const auto again = limited.Again(); again && !slice) next = *again;
    std::uint32_t running = 0;
    for (const KernelView& kernel : kernels) {
      if (kernel.started == kernel.finished) continue;
      ++running;
      next = std::min(next, ends[kernel.id]);
    }
    REQUIRE(next > now);
    REQUIRE(next != ~std::uint64_t{0});
    for (KernelView& kernel : kernels) {
      if (kernel.started == kernel.finished) continue;
      had[kernel.id] += static_cast<double>(next - now) / running;
      if (ends[kernel.id] == next) kernel.finished = kernel.started;
    }
    now = next;
  }
  CHECK(had[0] / kUntil == Approx(0.2).margin(0.02));
  CHECK(had[1] / kUntil == Approx(0.5).margin(0.02));
}

TEST_CASE("Limited_InFlight_LetsTheFirstOnesTakePart") {
  Limited limited(MakePolicy("leftover").value(), 1000, [](std::uint32_t tenant) {
    return tenant == 1 ? Limited::Limits{.in_flight = 2} : Limited::Limits{};
  });
  const std::vector<SmView> sms(1, SmView{.free_ctas = 1});
  std::vector<KernelView> kernels = {
      {.id = 1, .ctas = 4, .tenant = 1}, {.id = 2, .ctas = 4, .tenant = 1}, {.id = 3, .ctas = 4, .tenant = 1}};
  CHECK(limited.Next({.cycle = 1, .kernels = kernels, .sms = sms})->kernel == 1);
  kernels[2].started = 4;  // one that runs takes part first
  kernels[0].started = kernels[0].finished = 0;
  CHECK(limited.Next({.cycle = 2, .kernels = kernels, .sms = sms})->kernel == 1);
  kernels[0].started = 4;
  CHECK_FALSE(limited.Next({.cycle = 3, .kernels = kernels, .sms = sms}));
  kernels.push_back({.id = 4, .ctas = 1, .tenant = 2});
  CHECK(limited.Next({.cycle = 4, .kernels = kernels, .sms = sms})->kernel == 4);
  kernels[2].finished = 4;
  kernels.erase(kernels.begin() + 2);
  CHECK(limited.Next({.cycle = 5, .kernels = kernels, .sms = sms})->kernel == 2);
}

}  // namespace
}  // namespace gridloom::policy
