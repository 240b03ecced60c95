#include "sim/timing/dispatch/cta_groups.h"

#include <catch2/catch.hpp>

#include "sim/timing/sm/occupancy.h"
#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

struct Groups : FrontEnd {
  WorkId Add(std::uint64_t ctas) {
    const WorkId id = AddKernel(OneInstruction(ctas));
    works.at(id).kernel.needs = NeedsOf(works.at(id).kernel.source->shape(), parameters.device).value();
    return id;
  }
  CtaGroups groups{parameters, works, ready, codes};
};

TEST_CASE("CtaGroups_Extend_PutsCtasBehindThoseOfTheKernel") {
  Groups front;
  const WorkId kernel = front.Add(4);
  front.ready.Add(kernel, 0);
  REQUIRE(front.groups.Extend(kernel, OneInstruction(3)).ok());
  const KernelState& state = front.works.at(kernel).kernel;
  CHECK(state.ctas == 7);
  CHECK(front.ready.Find(kernel)->ctas == 7);
  CHECK(front.works.at(kernel).result.ctas == 7);
  CHECK(state.groups[0].first_cta == 4);
}

TEST_CASE("CtaGroups_GroupThatIsNotLikeTheKernel_IsRefusedWithTheReason") {
  Groups front;
  const WorkId kernel = front.Add(4);
  CHECK(front.groups.Extend(kernel, OneInstruction(1, "two")).error().message ==
        "a group of CTAs of two was given to one, which has other code");
  CHECK(front.groups.Extend(kernel, OneInstruction(1, "one", 2)).error().message ==
        "a group of CTAs of one was given to one, which has other code");
  front.works.at(kernel).kernel.needs.warps = 2;
  CHECK(front.groups.Extend(kernel, OneInstruction(1)).error().message ==
        "a group of CTAs was given to one that need something else than its own");
  front.works.Finish(kernel, 9);
  CHECK(front.groups.Extend(kernel, OneInstruction(1)).error().message ==
        "a group of CTAs was given to kernel 0, which has ended");
}

TEST_CASE("CtaGroups_Join_MovesAKernelWhoseCtasHaveAllStartedBehindTheOthers") {
  Groups front;
  const WorkId kernel = front.Add(4), other = front.Add(4), launch = front.Add(2);
  front.ready.Add(kernel, 0);
  front.ready.Add(other, 0);
  front.ready.Find(kernel)->started = 4;
  REQUIRE(front.groups.Join(kernel, launch).ok());
  CHECK(front.ready.Find(kernel) > front.ready.Find(other));
  CHECK(front.ready.Find(kernel)->ctas == 6);
  CHECK(front.works.at(kernel).result.ctas == 4);  // those that joined are the launch's
  CHECK(front.groups.Join(kernel, launch).error().message == "a launch joins a kernel that has begun");
}

TEST_CASE("CtaGroups_Cut_LeavesWhatHasStarted_AndNamesLaunchesThatHaveNothingLeft") {
  Groups front;
  const WorkId kernel = front.Add(4), launch = front.Add(2), late = front.Add(2);
  front.ready.Add(kernel, 0);
  REQUIRE(front.groups.Join(kernel, launch).ok());
  REQUIRE(front.groups.Join(kernel, late).ok());
  front.ready.Find(kernel)->started = 5;
  CHECK(front.groups.Cut(*front.ready.Find(kernel), 30) == std::vector<WorkId>{late});
  CHECK(front.ready.Find(kernel)->ctas == 5);
  CHECK(front.works.at(launch).result.ctas == 1);
  CHECK(front.works.at(late).result.ctas == 0);
}

}  // namespace
}  // namespace gridloom::timing
