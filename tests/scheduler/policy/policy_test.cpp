#include <algorithm>
#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace gridloom::policy
