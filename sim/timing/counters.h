// The statistics of the model: plain sums, each kept by the component that it is about. counters.def names them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gridloom::timing {

struct SmCounters {
#define SM_COUNTER(name, unit, meaning) std::uint64_t name = 0;
#include "sim/timing/counters.def"
  /// Scheduler cycles without issue in which a gate of a proposed part held warps back, by Ports::warp_gates. A part
  /// names it.
  std::array<std::uint64_t, 4> stall_gate{};
  template <typename Function>
  void ForEach(const Function& function) {
#define SM_COUNTER(name, unit, meaning) function(name);
#include "sim/timing/counters.def"
    for (std::uint64_t& stall : stall_gate) function(stall);
  }
  SmCounters& operator+=(const SmCounters& other);
  SmCounters& operator-=(const SmCounters& other);
  bool operator==(const SmCounters&) const = default;
};

struct MemoryCounters {
#define MEMORY_COUNTER(name, unit, meaning) std::uint64_t name = 0;
#include "sim/timing/counters.def"
  template <typename Function>
  void ForEach(const Function& function) {
#define MEMORY_COUNTER(name, unit, meaning) function(name);
#include "sim/timing/counters.def"
  }
  MemoryCounters& operator+=(const MemoryCounters& other);
  MemoryCounters& operator-=(const MemoryCounters& other);
  bool operator==(const MemoryCounters&) const = default;
};

/// Launches by kernels; of the device.
struct LaunchCounters {
#define LAUNCH_COUNTER(name, unit, meaning) std::uint64_t name = 0;
#include "sim/timing/counters.def"
  LaunchCounters& operator+=(const LaunchCounters& other);
  LaunchCounters& operator-=(const LaunchCounters& other);
  bool operator==(const LaunchCounters&) const = default;
};

/// Sums over all SMs and partitions.
struct Counters {
  SmCounters sm;
  MemoryCounters memory;
  LaunchCounters launches;
  /// Counters of the proposed parts, one part's behind the other's (part.h).
  static constexpr std::size_t kPartCounters = 48;
  std::array<std::uint64_t, kPartCounters> parts{};
  Counters& operator+=(const Counters& other);
  Counters& operator-=(const Counters& other);
  bool operator==(const Counters&) const = default;
};

/// Name, unit and meaning of a counter, and its value.
struct CounterInfo {
  std::string_view name, unit, meaning;
  std::uint64_t (*read)(const Counters&, std::size_t index);
  std::size_t index = 0;  ///< of a list of counters
  std::uint64_t value(const Counters& counters) const { return read(counters, index); }
};

/// All of them but those of proposed parts, in the order of counters.def. sim/hardware has those of a device with its
/// parts.
std::span<const CounterInfo> CounterTable();

}  // namespace gridloom::timing
