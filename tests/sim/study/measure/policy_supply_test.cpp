#include "sim/study/measure/policy_supply.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>

#include "scheduler/model/profile_file.h"
#include "sim/device/device_files.h"
#include "sim/study/measure/co_run.h"
#include "sim/study/measure/profiling.h"
#include "tests/sim/timing/synthetic.h"

namespace gridloom::study {
namespace {

sim::DeviceSpec Device() {
  auto device = sim::LoadDevice("fermi-8");
  REQUIRE(device.ok());
  return *device;
}

/// `ctas` blocks of 4 warps, each of which does `rounds` dependent additions; `extra` more instructions make it another
/// kernel.
std::shared_ptr<trace::CtaSource> Launch(const std::string& name, std::uint64_t ctas, std::uint32_t rounds = 50,
                                         int extra = 0) {
  timing::CodeBuilder code(name);
  code.Block();
  for (int i = 0; i < 4 + extra; ++i) code.Op(trace::OpClass::kInt, {1}, {1});
  timing::CtaBuilder cta;
  for (int warp = 0; warp < 4; ++warp) {
    cta.Warp();
    cta.Visit(0, timing::kAllLanes, rounds);
  }
  return timing::SameCtas(
      code.code(), {.ctas = ctas, .threads_per_cta = 128, .registers_per_thread = 16, .shared_bytes = 0}, cta.Finish());
}

/// A launch of which no block comes.
class Nothing final : public trace::CtaSource {
 public:
  explicit Nothing(std::shared_ptr<trace::CtaSource> like) : like_(std::move(like)) {}
  const trace::KernelCode& code() const override { return like_->code(); }
  const trace::LaunchShape& shape() const override { return like_->shape(); }
  Result<trace::LoadedCta> Load(std::uint64_t) override { return trace::LoadedCta{}; }

 private:
  const std::shared_ptr<trace::CtaSource> like_;
};

struct Fixture {
  explicit Fixture(std::string_view policy, const std::string& profiles = {}, std::size_t most_kinds = 1024) {
    auto made = PolicySupply::Create(Device(), {.profiles = profiles,
                                                .tell = [this](const std::string& what) { told.push_back(what); },
                                                .most_kinds = most_kinds});
    REQUIRE(made.ok());
    supply = std::move(made).value();
    auto given = supply->Make(policy);
    INFO((given.ok() ? "" : given.error().message));
    REQUIRE(given.ok());
    CHECK((*given)->name() == policy);
  }
  std::uint64_t Profile(std::shared_ptr<trace::CtaSource> source, std::uint32_t tenant = 0) const {
    return supply->Profile(tenant, source);
  }

  std::vector<std::string> told;
  std::shared_ptr<PolicySupply> supply;
};

TEST_CASE("Profile_UnderAPolicyThatNeedsNone_LeavesLaunchesAlone") {
  Fixture f("leftover");
  auto source = Launch("a", 100);
  const auto before = source;
  CHECK(f.supply->Profile(0, source) == 0);
  CHECK(source == before);
  CHECK(f.supply->cost().kernels == 0);
}

TEST_CASE("Profile_OfEachKindOfLaunch_IsMeasuredOnce") {
  Fixture f("kernelet");
  const std::uint64_t first = f.Profile(Launch("a", 1000));
  const auto cost = f.supply->cost();
  CHECK(first != 0);
  CHECK(cost.kernels == 1);
  CHECK(cost.warp_instructions > 0);
  CHECK(f.Profile(Launch("a", 1000)) == first);
  CHECK(f.Profile(Launch("a", 10)) == first);
  CHECK(f.supply->cost().warp_instructions == cost.warp_instructions);
  const std::uint64_t second = f.Profile(Launch("b", 1000)), namesake = f.Profile(Launch("a", 1000, 50, 1));
  CHECK(second != first);
  CHECK((namesake != first && namesake != second && namesake != 0));  // of another program, say
  CHECK(f.supply->cost().kernels == 3);
  CHECK(f.told.empty());
}

TEST_CASE("Profile_OfALaunch_LeavesItAllOfItsBlocks") {
  Fixture f("kernelet");
  auto source = Launch("a", 300);
  const auto block = source->Load(7);
  REQUIRE(f.supply->Profile(0, source) != 0);
  for (std::uint64_t cta = 0; cta < 300; ++cta) {
    const auto loaded = source->Load(cta);
    REQUIRE((loaded.ok() && loaded->trace == block->trace));
  }
}

TEST_CASE("Profile_FromFewBlocks_IsMadeAnewFromManyMore") {
  Fixture f("kernelet");
  const std::uint64_t few = f.Profile(Launch("a", 2));
  CHECK(f.Profile(Launch("a", 7)) == few);
  const std::uint64_t more = f.Profile(Launch("a", 1000));
  CHECK((few != 0 && more != 0 && more != few));
  CHECK(f.Profile(Launch("a", 100'000)) == more);
  CHECK(f.Profile(Launch("a", 2)) == more);
}

TEST_CASE("Profile_OfALaunchWithoutBlocks_IsNoneAndSaidOnce_ALaterOneHasIt") {
  Fixture f("kernelet");
  for (int i = 0; i < 2; ++i) CHECK(f.Profile(std::make_shared<Nothing>(Launch("a", 100))) == 0);
  REQUIRE(f.told.size() == 1);
  CHECK(f.told[0] == "kernel a has no profile, and is scheduled without one: none of its thread blocks came");
  CHECK(f.Profile(Launch("a", 100)) != 0);
}

TEST_CASE("Profile_WithAFile_IsLookedUp_AndWhatItLacksIsSaidOnce") {
  const std::string path = "/tmp/gridloom-policy-supply-" + std::to_string(::getpid()) + ".json";
  model::ProfileFile file{.sm = SmModelOf(Device())};
  file.kernels.push_back({.kernel = "a",
                          .needs = {.warps = 4, .registers = 2048},
                          .max_resident_ctas = 8,
                          .instructions_per_cta = 800,
                          .pur = 0.5,
                          .ipc = 0.5});
  std::ofstream(path) << model::ToJson(file);
  Fixture f("kernelet", path);
  CHECK(f.Profile(Launch("a", 100)) == 1);
  for (int i = 0; i < 2; ++i) CHECK(f.Profile(Launch("b", 100)) == 0);
  REQUIRE(f.told.size() == 1);
  CHECK(f.told[0] ==
        "kernel b has no profile, and is scheduled without one: " + path + " has none of it with blocks of 4 warps");
  CHECK(f.supply->cost().kernels == 0);
  std::remove(path.c_str());
}

TEST_CASE("Profile_OfATenantWithKernelsWithoutEnd_KeepsThoseItHas_AndOthersHaveTheirs") {
  constexpr std::size_t kMost = 3;
  Fixture f("kernelet", {}, kMost);
  const auto own = [&](std::size_t i, std::uint32_t tenant) {
    return f.Profile(Launch("k" + std::to_string(i), 10), tenant);
  };
  std::vector<std::uint64_t> first;
  for (std::size_t i = 0; i < 10; ++i) first.push_back(own(i, 1));
  for (std::size_t i = 0; i < 10; ++i) CHECK((first[i] != 0) == (i < kMost));
  CHECK(f.supply->cost().kernels == kMost);
  REQUIRE(f.told.size() == kMost);
  CHECK(f.told[0] ==
        "kernel k3 has no profile, and is scheduled without one: its tenant has 3 kinds of kernels already");
  CHECK(own(0, 1) == first[0]);
  CHECK(own(1, 2) == first[1]);  // what others' launches are known by is shared
  for (std::size_t i = 20; i < 20 + kMost; ++i) CHECK(own(i, 2) != 0);
  CHECK(own(30, 2) == 0);
}

TEST_CASE("Make_OfAnUnknownPolicy_FailsAndChangesNothing") {
  Fixture f("kernelet");
  CHECK_FALSE(f.supply->Make("kernlet").ok());
  CHECK(f.Profile(Launch("a", 100)) != 0);
  CHECK(f.supply->Make("leftover").ok());
  CHECK(f.Profile(Launch("b", 100)) == 0);
}

std::shared_ptr<const TracedKernel> Traced(std::uint32_t rounds) {
  const auto launch = Launch("a", 1, rounds);
  const auto block = launch->Load(0);
  return TracedKernel::Make("a", launch->code(), launch->shape(), {block->trace});
}

TEST_CASE("MeasureCoRun_Bounded_EndsInTimeWithTheSameRate") {
  const sim::DeviceSpec device = Device();
  const CoRunPart part{.kernel = Traced(2000), .ctas_per_sm = 4};
  std::uint64_t whole = 0, bounded = 0;
  const auto all = MeasureCoRun(device, std::span(&part, 1), {.effort = {.simulated = &whole}});
  const std::uint64_t most = whole / 8;  // less than the first of three waves
  const auto some = MeasureCoRun(device, std::span(&part, 1), {.effort = {.most = most, .simulated = &bounded}});
  REQUIRE((all.ok() && some.ok()));
  CHECK(bounded >= most);
  CHECK(bounded < most + most / 4);
  CHECK(some->parts[0].ipc == Approx(all->parts[0].ipc).epsilon(0.02));
  CHECK(some->parts[0].ctas_per_cycle == Approx(all->parts[0].ctas_per_cycle).epsilon(0.02));
}

TEST_CASE("MeasureCoRun_BoundThatIsNotReached_ChangesNothing") {
  const sim::DeviceSpec device = Device();
  const CoRunPart part{.kernel = Traced(100), .ctas_per_sm = 4};
  const auto all = MeasureCoRun(device, std::span(&part, 1), {});
  const auto same = MeasureCoRun(device, std::span(&part, 1), {.effort = {.most = std::uint64_t{1} << 40}});
  REQUIRE((all.ok() && same.ok()));
  CHECK(same->parts[0].ipc == all->parts[0].ipc);
  CHECK(same->cycles == all->cycles);
  const CoRunPart two[] = {part, part};
  CHECK_FALSE(MeasureCoRun(device, two, {.effort = {.most = 1000}}).ok());
}

}  // namespace
}  // namespace gridloom::study
