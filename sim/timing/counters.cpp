#include "sim/timing/counters.h"

namespace gridloom::timing {
namespace {

constexpr CounterInfo kCounterTable[] = {
#define SM_COUNTER(name, unit, meaning) \
  {#name, unit, meaning, [](const Counters& counters, std::size_t) { return counters.sm.name; }},
#include "sim/timing/counters.def"
#define MEMORY_COUNTER(name, unit, meaning) \
  {#name, unit, meaning, [](const Counters& counters, std::size_t) { return counters.memory.name; }},
#include "sim/timing/counters.def"
#define LAUNCH_COUNTER(name, unit, meaning) \
  {#name, unit, meaning, [](const Counters& counters, std::size_t) { return counters.launches.name; }},
#include "sim/timing/counters.def"
};

template <std::size_t count>
void Add(std::array<std::uint64_t, count>& sums, const std::array<std::uint64_t, count>& others) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += others[i];
}
template <std::size_t count>
void Subtract(std::array<std::uint64_t, count>& sums, const std::array<std::uint64_t, count>& others) {
  for (std::size_t i = 0; i < count; ++i) sums[i] -= others[i];
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
  sm += other.sm;
  memory += other.memory;
  launches += other.launches;
  Add(parts, other.parts);
  return *this;
}

Counters& Counters::operator-=(const Counters& other) {
  sm -= other.sm;
  memory -= other.memory;
  launches -= other.launches;
  Subtract(parts, other.parts);
  return *this;
}

SmCounters& SmCounters::operator+=(const SmCounters& other) {
#define SM_COUNTER(name, unit, meaning) name += other.name;
#include "sim/timing/counters.def"
  Add(stall_gate, other.stall_gate);
  return *this;
}

MemoryCounters& MemoryCounters::operator+=(const MemoryCounters& other) {
#define MEMORY_COUNTER(name, unit, meaning) name += other.name;
#include "sim/timing/counters.def"
  return *this;
}

SmCounters& SmCounters::operator-=(const SmCounters& other) {
#define SM_COUNTER(name, unit, meaning) name -= other.name;
#include "sim/timing/counters.def"
  Subtract(stall_gate, other.stall_gate);
  return *this;
}

MemoryCounters& MemoryCounters::operator-=(const MemoryCounters& other) {
#define MEMORY_COUNTER(name, unit, meaning) name -= other.name;
#include "sim/timing/counters.def"
  return *this;
}

LaunchCounters& LaunchCounters::operator+=(const LaunchCounters& other) {
#define LAUNCH_COUNTER(name, unit, meaning) name += other.name;
#include "sim/timing/counters.def"
  return *this;
}

LaunchCounters& LaunchCounters::operator-=(const LaunchCounters& other) {
#define LAUNCH_COUNTER(name, unit, meaning) name -= other.name;
#include "sim/timing/counters.def"
  return *this;
}

std::span<const CounterInfo> CounterTable() { return kCounterTable; }

}  // namespace gridloom::timing
