#include "scheduler/daemon/latency.h"

#include <catch2/catch.hpp>

namespace gridloom::broker {
namespace {

TEST_CASE("Latencies_TellPartsNeverTooSmall_AndKnowTheLongest") {
  Latencies latencies;
  CHECK(latencies.Quantile(0.99) == 0);
  for (std::uint64_t ns = 1; ns <= 100'000; ++ns) latencies.Add(ns);
  CHECK(latencies.count() == 100'000);
  CHECK(latencies.most() == 100'000);
  for (const double part : {0.0, 0.001, 0.5, 0.9, 0.99}) {
    const double truth = part * 100'000;
    CHECK(static_cast<double>(latencies.Quantile(part)) >= truth);
    CHECK(static_cast<double>(latencies.Quantile(part)) <= truth * 1.13 + 2);
  }
  CHECK(latencies.Quantile(1) == 100'000);
  latencies.Add(~std::uint64_t{0});
  CHECK(latencies.most() == ~std::uint64_t{0});
  CHECK(latencies.Quantile(1) == ~std::uint64_t{0});
}

}  // namespace
}  // namespace gridloom::broker
