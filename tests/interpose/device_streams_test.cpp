#include "interpose/session/device_streams.h"

#include <catch2/catch.hpp>
#include <deque>

namespace gridloom::session {
namespace {

struct Launch {
  bool complete = false;
};

TEST_CASE("DeviceStreams_AsManyAsThreadsLaunch_KeepsThoseThatAreNotComplete") {
  DeviceStreams<Launch*> streams;
  std::deque<Launch> launches;
  constexpr std::uint64_t kThreads = 200'000, kPending = 5000;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    streams.Get(thread, false).last.assign(1, &launches.emplace_back());
    if (thread >= kPending) launches[thread - kPending].complete = true;
    REQUIRE(streams.size() <= 2 * (kPending + 1) + 1024);
  }
  // What is pending is known.
  for (std::uint64_t thread = kThreads - kPending; thread < kThreads; ++thread) {
    REQUIRE(streams.Get(thread, false).last == std::vector<Launch*>{&launches[thread]});
  }
}

TEST_CASE("DeviceStreams_WhereCompleteLaunchesCount_AllAreKept") {
  DeviceStreams<Launch*> streams;
  Launch complete{.complete = true};
  for (std::uint64_t thread = 0; thread < 5000; ++thread) streams.Get(thread, true).last.assign(1, &complete);
  CHECK(streams.size() == 5000);
  for (std::uint64_t thread = 0; thread < 5000; ++thread) REQUIRE(streams.Get(thread, true).last.size() == 1);
}

}  // namespace
}  // namespace gridloom::session
