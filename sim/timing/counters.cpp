#include "sim/timing/counters.h"

namespace gridloom::timing {
namespace {

constexpr CounterInfo kTable[] = {
#define SM_COUNTER(name, unit, meaning) {#name, unit, meaning, [](const Counters& counters) { return counters.sm.name; }},
#include "sim/timing/counters.def"
#define MEMORY_COUNTER(name, unit, meaning) {#name, unit, meaning, [](const Counters& counters) { return counters.memory.name; }},
#include "sim/timing/counters.def"
};

}  // namespace

SmCounters& SmCounters::operator+=(const SmCounters& other) {
#define SM_COUNTER(name, unit, meaning) name += other.name;
#include "sim/timing/counters.def"
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
  return *this;
}

MemoryCounters& MemoryCounters::operator-=(const MemoryCounters& other) {
#define MEMORY_COUNTER(name, unit, meaning) name -= other.name;
#include "sim/timing/counters.def"
  return *this;
}

std::span<const CounterInfo> CounterTable() { return kTable; }

}  // namespace gridloom::timing
