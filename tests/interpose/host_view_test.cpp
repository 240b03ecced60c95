// When a host may look at results: which waits, after which works.
#include "interpose/observe/host_view.h"

#include <catch2/catch.hpp>

using gridloom::session::HostView;

namespace {

const int kContexts[2] = {};
constexpr HostView::Lane LaneOf(std::uint64_t stream, bool blocking = true, int context = 0) {
  return {&kContexts[context], stream, blocking};
}

}  // namespace

TEST_CASE("HostView_NothingNew_IsNotSeen") {
  HostView view;
  CHECK(!view.Sees());
  view.Marks(LaneOf(1), 1);
  CHECK(!view.Sees());
  view.WaitedFor(1);
  view.WaitedForAll(&kContexts[0]);
  CHECK(!view.Sees());
}

TEST_CASE("HostView_CopyToTheHost_IsSeenUntilItWasWaitedFor") {
  HostView view;
  view.Writes(LaneOf(1), 1);
  CHECK(view.Sees());
  view.WaitedForStream(&kContexts[0], 2, false);
  view.WaitedForStream(&kContexts[1], 1, false);
  view.WaitedForAll(&kContexts[1]);
  CHECK(view.Sees());
  view.WaitedForStream(&kContexts[0], 1, false);
  CHECK(!view.Sees());
  view.Writes(LaneOf(1), 2);
  CHECK(view.Sees());
  view.WaitedForAll(&kContexts[0]);
  CHECK(!view.Sees());
}

TEST_CASE("HostView_Event_CoversWhatWasPutBeforeIt") {
  HostView view;
  view.Writes(LaneOf(1), 1);
  view.Marks(LaneOf(2), 2);  // in another stream
  view.Marks(LaneOf(1), 3);
  view.WaitedFor(2);
  CHECK(view.Sees());
  view.WaitedFor(3);
  CHECK(!view.Sees());
  view.Writes(LaneOf(1), 4);
  view.Marks(LaneOf(1), 5);
  view.Writes(LaneOf(1), 6);
  view.Marks(LaneOf(1), 7);
  view.WaitedFor(5);
  CHECK(view.Sees());
  view.WaitedFor(5);
  CHECK(view.Sees());
  view.WaitedFor(7);
  CHECK(!view.Sees());
}

TEST_CASE("HostView_LegacyStream_WaitsForBlockingOnes") {
  HostView view;
  view.Writes(LaneOf(2), 1);
  view.Writes(LaneOf(3, false), 2);
  view.WaitedForStream(&kContexts[0], 1, true);
  CHECK(view.Sees());  // stream 3
  view.WaitedForStream(&kContexts[0], 3, false);
  CHECK(!view.Sees());
}

TEST_CASE("HostView_SharedMemory_IsAlwaysSeen") {
  HostView view;
  view.Shares();
  CHECK(view.Sees());
  view.WaitedForAll(&kContexts[0]);
  CHECK(view.Sees());
}

TEST_CASE("HostView_ManyEvents_TakeLittleMemoryAndMissNothing") {
  HostView view;
  view.Writes(LaneOf(1), 1);
  for (std::uint64_t mark = 2; mark < 20'000; ++mark) view.Marks(LaneOf(1), mark);
  view.WaitedFor(2);  // too long ago: in doubt the host looks
  CHECK(view.Sees());
  view.WaitedFor(19'999);
  CHECK(!view.Sees());
}
