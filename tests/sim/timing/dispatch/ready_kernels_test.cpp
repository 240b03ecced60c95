#include "sim/timing/dispatch/ready_kernels.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

/// Keeps what it was shown, and wants nothing.
struct Looks final : policy::Policy {
  std::string_view name() const override { return "looks"; }
  std::optional<policy::Slice> Next(const policy::Snapshot& snapshot) override {
    seen.clear();
    for (const policy::KernelView& kernel : snapshot.kernels) seen.push_back(kernel.id);
    pages = snapshot.pages;
    return std::nullopt;
  }
  std::vector<std::uint64_t> seen;
  std::uint64_t pages = 0;
};

using Ids = std::vector<std::uint64_t>;

TEST_CASE("ReadyKernels_ThePolicySeesThem_InTheirOrder_ButNotThoseHeldBack") {
  FrontEnd front;
  Looks looks;
  ReadyKernels ready(front.parameters, looks, front.ports, front.works, front.placement);
  for (std::uint32_t stream = 0; stream < 3; ++stream) ready.Add(front.AddKernel(stream), 0);
  ready.BeginDecision();
  CHECK_FALSE(ready.NextSlice(0));
  CHECK(looks.seen == Ids{0, 1, 2});
  ready.HoldBack(1);
  CHECK_FALSE(ready.NextSlice(0));
  CHECK(looks.seen == Ids{0, 2});
  ready.BeginDecision();
  ready.MoveBehindOthers(ready.Find(0));
  CHECK_FALSE(ready.NextSlice(0));
  CHECK(looks.seen == Ids{1, 2, 0});
  ready.Remove(ready.Find(2));
  CHECK(ready.Find(2) == ready.end());
  CHECK_FALSE(ready.NextSlice(0));
  CHECK(looks.seen == Ids{1, 0});
}

TEST_CASE("ReadyKernels_EachTenant_HasPlacesOfItsOwn") {
  sim::DeviceSpec device = TestDevice("v100");
  device.grid.max_resident = 1;
  FrontEnd front(device);
  CHECK(front.ready.HasRoomFor(0));
  front.ready.Add(front.AddKernel(0), 0);
  CHECK_FALSE(front.ready.HasRoomFor(0));
  CHECK(front.ready.HasRoomFor(1));
  front.ready.Remove(front.ready.Find(0));
  CHECK(front.ready.HasRoomFor(0));
}

TEST_CASE("ReadyKernels_KernelWithOneBehindIt_IsFollowed") {
  FrontEnd front;
  front.ready.Add(front.AddKernel(0), 0);
  front.ready.Add(front.AddKernel(1), 0);
  front.ready.SetFollowed(1);
  CHECK_FALSE(front.ready.Find(0)->followed);
  CHECK(front.ready.Find(1)->followed);
}

TEST_CASE("ReadyKernels_WherePagesHaveOwners_ThePolicySeesThem") {
  struct Shares final : PageShares {
    Pages At(Cycle) override { return {.available = 12, .loading = true}; }
    std::uint64_t OwnedBy(std::uint32_t launch) const override { return 5 + launch; }
    std::optional<Ready> ReadyOf(std::uint32_t) const override { return Ready{.ready = 2, .begun = 1}; }
  } shares;
  FrontEnd front;
  front.ports.page_shares = &shares;
  Looks looks;
  ReadyKernels ready(front.parameters, looks, front.ports, front.works, front.placement);
  ready.Add(front.AddKernel(0), 0);
  CHECK_FALSE(ready.NextSlice(0));
  CHECK(looks.pages == 12);
  CHECK(ready.Find(0)->pages == 5);
  CHECK(ready.Find(0)->announced);
  CHECK(ready.Find(0)->ready == 2);
}

}  // namespace
}  // namespace gridloom::timing
