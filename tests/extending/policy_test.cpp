// The example of a policy in docs/extending.md.
#include <catch2/catch.hpp>

#include "scheduler/policy/builtin.h"

namespace gridloom::policy {
namespace {

TEST_CASE("Shortest_StartsTheKernelWithTheFewestBlocksLeft") {
  const auto policy = MakePolicy("shortest").value();
  CHECK(policy->name() == "shortest");
  const KernelView kernels[] = {{.id = 1, .ctas = 100, .started = 10},
                                {.id = 2, .ctas = 400, .started = 370},
                                {.id = 3, .ctas = 5, .started = 5}};
  const SmView sms[] = {{.free_ctas = 1}};

  const auto slice = policy->Next({.cycle = 0, .kernels = kernels, .sms = sms});
  REQUIRE(slice);
  CHECK(slice->kernel == 2);
  CHECK(slice->ctas == 30);
}

TEST_CASE("Shortest_WithNothingLeft_StartsNothing") {
  const KernelView kernels[] = {{.id = 3, .ctas = 5, .started = 5}};
  CHECK_FALSE(MakePolicy("shortest").value()->Next({.cycle = 0, .kernels = kernels, .sms = {}}));
}

}  // namespace
}  // namespace gridloom::policy
