#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "scheduler/policy/builtin.h"

namespace gridloom::policy {
namespace {

std::optional<Slice> Ask(std::string_view name, const std::vector<KernelView>& kernels) {
  const std::vector<SmView> sms(2, SmView{.free_ctas = 8, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152});
  return MakePolicy(name)->Next({.cycle = 5, .kernels = kernels, .sms = sms});
}

TEST_CASE("MakePolicy_KnowsEveryNameAndNoOther") {
  const auto names = PolicyNames();
  CHECK(std::ranges::is_sorted(names));
  for (const std::string_view name : names) {
    const auto policy = MakePolicy(name);
    REQUIRE(policy != nullptr);
    CHECK(policy->name() == name);
  }
  CHECK(MakePolicy("nothing") == nullptr);
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
  const std::vector<KernelView> kernels = {{.id = 7, .ctas = 10}, {.id = 8, .ctas = 3, .priority = 2}, {.id = 9, .ctas = 4, .priority = 2}};
  const auto slice = Ask("priority", kernels);
  REQUIRE(slice.has_value());
  CHECK(slice->kernel == 8);
  CHECK(slice->ctas == 3);
}

/// A device for 16 blocks of one kind. Tenants with endless kernels; `seconds[t]` is how long a block of tenant t takes.
struct FairDevice {
  std::unique_ptr<Policy> policy = MakePolicy("fair");
  std::vector<KernelView> kernels;
  std::uint64_t free = 16, now = 0;
  std::multimap<std::uint64_t, std::size_t> ends;
  std::vector<double> served;

  FairDevice(std::vector<double> weights) : served(weights.size()) {
    for (std::size_t t = 0; t < weights.size(); ++t) {
      kernels.push_back({.id = t, .ctas = ~std::uint64_t{0}, .tenant = static_cast<std::uint32_t>(t + 1), .weight = weights[t]});
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

  double ShareOf(std::size_t tenant) const { return served[tenant] / std::accumulate(served.begin(), served.end(), 0.0); }
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

}  // namespace
}  // namespace gridloom::policy
