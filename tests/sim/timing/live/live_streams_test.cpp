#include "sim/timing/live/live_streams.h"

#include <catch2/catch.hpp>

namespace gridloom::timing {
namespace {

TEST_CASE("LiveStreams_AStreamOfAHost_KeepsItsNumber") {
  LiveStreams streams;
  const std::uint32_t first = streams.NumberOf(0, 7);
  CHECK(streams.NumberOf(0, 7) == first);
  CHECK(streams.NumberOf(1, 7) != first);
  CHECK(streams.NumberOf(0, 8) != first);
  CHECK(streams.OwnerOf(first) == HostId{0});
  CHECK_FALSE(streams.OwnerOf(1u << 31));
}

TEST_CASE("LiveStreams_StreamOfOneWork_IsLetGoWithTheWork") {
  LiveStreams streams;
  const std::uint32_t number = streams.NumberForOne(3);
  streams.Begin(number);
  streams.Begin(number);
  CHECK(streams.size() == 1);
  streams.End(number);
  CHECK(streams.OwnerOf(number) == HostId{3});
  streams.End(number);
  CHECK(streams.size() == 0);
}

TEST_CASE("LiveStreams_ManyStreamsThatLieIdle_ShareNumbers") {
  LiveStreams streams;
  const auto use = [&](std::uint64_t name) {
    const std::uint32_t number = streams.NumberOf(0, name);
    streams.Begin(number);
    streams.End(number);
    return number;
  };
  for (std::uint64_t name = 0; name < LiveStreams::kIdle; ++name) CHECK(use(name) == name);
  const std::uint32_t next = use(LiveStreams::kIdle);
  CHECK(next == LiveStreams::kIdle);
  // From now on the streams that have lain idle longest give up their numbers.
  CHECK(use(LiveStreams::kIdle + 1) == 0);
  CHECK(use(LiveStreams::kIdle + 2) == 1);
  CHECK(streams.size() == LiveStreams::kIdle + 1);
  // A stream that has given up its number gets another.
  CHECK(use(0) == 2);
}

TEST_CASE("LiveStreams_StreamInWhichSomethingRuns_KeepsItsNumber") {
  LiveStreams streams;
  for (std::uint64_t name = 0; name <= LiveStreams::kIdle; ++name) {
    const std::uint32_t number = streams.NumberOf(0, name);
    streams.Begin(number);
    streams.End(number);
  }
  streams.Begin(streams.NumberOf(0, 0));
  CHECK(streams.NumberOf(0, 5000) == LiveStreams::kIdle + 1);
  CHECK(streams.NumberOf(0, 0) == 0);
}

TEST_CASE("LiveStreams_HostThatIsForgotten_LeavesNothing") {
  LiveStreams streams;
  static_cast<void>(streams.NumberOf(0, 1));
  const std::uint32_t other = streams.NumberOf(1, 1);
  streams.Forget(0);
  CHECK(streams.size() == 1);
  CHECK(streams.NumberOf(1, 1) == other);
}

}  // namespace
}  // namespace gridloom::timing
