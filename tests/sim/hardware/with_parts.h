// The parts that a device describes, for a run of the timing model, and what they have counted.
#pragma once

#include <catch2/catch.hpp>
#include <string_view>

#include "sim/hardware/catalog.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {

inline RunOptions WithParts(const sim::DeviceSpec& device, RunOptions options = {}) {
  auto parts = hardware::Build(device);
  if (!parts.ok()) FAIL(parts.error().message);
  options.parts.insert(options.parts.end(), parts->begin(), parts->end());
  return options;
}

inline std::uint64_t Count(const sim::DeviceSpec& device, const Outcome& outcome, std::string_view name) {
  for (const CounterInfo& counter : hardware::CountersOf(device)) {
    if (counter.name == name) return counter.value(outcome.counters);
  }
  FAIL("no counter " << name);
  return 0;
}

}  // namespace gridloom::timing
