// Measurements are made once, on several threads, and kept.
#include "sim/study/measure/measurements.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>

#include "sim/device/device_files.h"

namespace gridloom::study {
namespace {

std::unique_ptr<RateCache> EmptyCache() {
  auto cache = RateCache::Open("");
  REQUIRE(cache.ok());
  return *std::move(cache);
}

Measurement Number(const std::string& key, double number, std::atomic<int>& made) {
  return {.what = "number " + key, .key = key, .measure = [number, &made]() -> Result<std::vector<double>> {
            ++made;
            return std::vector<double>{number};
          }};
}

TEST_CASE("Measurements_AreMadeOnce_WithProgress") {
  const auto cache = EmptyCache();
  std::atomic<int> made = 0;
  std::vector<std::size_t> progress;
  Measurements measurements(*cache, 3, [&](std::size_t done, std::size_t all, const std::string&) {
    CHECK(all == 20);
    progress.push_back(done);
  });
  std::vector<Measurement> wanted;
  for (int i = 0; i < 20; ++i) wanted.push_back(Number(std::to_string(i), i, made));
  REQUIRE(measurements.Make(wanted).ok());
  CHECK(made == 20);
  CHECK(progress.size() == 20);
  CHECK(std::ranges::is_sorted(progress));
  for (int i = 0; i < 20; ++i) CHECK(*measurements.GetNumber(wanted[static_cast<std::size_t>(i)]) == i);
  CHECK(made == 20);
}

TEST_CASE("Measurements_ThatFail_AreNamed_AndStopTheOthers") {
  const auto cache = EmptyCache();
  std::atomic<int> made = 0;
  Measurements measurements(*cache, 1, {});
  const Measurement bad{
      .what = "pc alone", .key = "bad", .measure = []() -> Result<std::vector<double>> { return Error{"no room"}; }};
  const Status failed = measurements.Make({bad, Number("after", 1, made)});
  REQUIRE(!failed.ok());
  CHECK(failed.error().message == "pc alone: no room");
  CHECK(made == 0);
}

TEST_CASE("Measurements_OfAnotherNumberOfNumbers_AreDamaged") {
  const auto cache = EmptyCache();
  std::atomic<int> made = 0;
  Measurements measurements(*cache, 1, {});
  const Measurement one = Number("one", 1, made);
  REQUIRE(measurements.Make({one}).ok());
  CHECK(!measurements.Get(one, 2).ok());
}

TEST_CASE("MeasurementKey_FollowsEveryValueOfTheDevice") {
  auto device = sim::LoadDevice("c2050");
  REQUIRE(device.ok());
  const std::string before = MeasurementKey(*device);
  CHECK(before == MeasurementKey(*sim::LoadDevice("c2050")));
  device->timing.l1.mshrs += 1;
  CHECK(MeasurementKey(*device) != before);
}

}  // namespace
}  // namespace gridloom::study
