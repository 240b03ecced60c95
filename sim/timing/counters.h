// The statistics of the model: plain sums, each kept by the component that it is about. counters.def names them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gridloom::timing {

struct SmCounters {
#define SM_COUNTER(name, unit, meaning) std::uint64_t name = 0;
#include "sim/timing/counters.def"
  SmCounters& operator+=(const SmCounters& other);
  SmCounters& operator-=(const SmCounters& other);
  bool operator==(const SmCounters&) const = default;
};

struct MemoryCounters {
#define MEMORY_COUNTER(name, unit, meaning) std::uint64_t name = 0;
#include "sim/timing/counters.def"
  MemoryCounters& operator+=(const MemoryCounters& other);
  MemoryCounters& operator-=(const MemoryCounters& other);
  bool operator==(const MemoryCounters&) const = default;
};

/// Sums over all SMs and partitions.
struct Counters {
  SmCounters sm;
  MemoryCounters memory;
  Counters& operator+=(const Counters& other) { return sm += other.sm, memory += other.memory, *this; }
  Counters& operator-=(const Counters& other) { return sm -= other.sm, memory -= other.memory, *this; }
  bool operator==(const Counters&) const = default;
};

/// Name, unit and meaning of a counter, and its value.
struct CounterInfo {
  std::string_view name, unit, meaning;
  std::uint64_t (*value)(const Counters&);
};

/// All of them, in the order of counters.def.
std::span<const CounterInfo> CounterTable();

}  // namespace gridloom::timing
