// A link that passes packets one after the other at a fixed number of bytes per cycle.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/timing/cycle.h"
#include "sim/timing/state_walk.h"

namespace gridloom::timing {

/// First come, first served. Time is kept in 1/256 SM cycle: a packet is never charged less than it takes, nor 1/256
/// more.
class Port {
 public:
  static constexpr std::uint32_t kMaxSectors = 4;

  Port() = default;
  /// `bytes_per_cycle` of a clock of `port_mhz`, as seen by the clock of the SMs. Packets are a header and 0 to 4
  /// sectors.
  Port(std::uint32_t bytes_per_cycle, std::uint32_t port_mhz, std::uint32_t sm_mhz, std::uint32_t header_bytes) {
    const std::uint64_t rate = std::uint64_t{bytes_per_cycle} * port_mhz;
    for (std::uint32_t sectors = 0; sectors <= kMaxSectors; ++sectors) {
      const std::uint64_t bytes = header_bytes + std::uint64_t{sectors} * 32;
      service_[sectors] = (bytes * sm_mhz * kUnits + rate - 1) / rate;
    }
  }

  /// First cycle at which another packet may begin.
  Cycle free_at() const { return (free_ + kUnits - 1) / kUnits; }

  /// Whether another packet may begin before the cycle is over.
  bool HasRoom(Cycle now) const { return free_ < (now + 1) * kUnits; }

  /// Passes a packet that is there at `now`; the cycle when all of it has passed.
  Cycle Send(Cycle now, std::uint32_t sectors) {
    free_ = std::max(free_, now * kUnits) + service_[sectors];
    return free_at();
  }

  /// Cycles that a packet takes on an idle port.
  Cycle Duration(std::uint32_t sectors) const { return (service_[sectors] + kUnits - 1) / kUnits; }

  void Walk(StateWalk& walk) { walk.NotBefore(free_, kUnits); }

 private:
  static constexpr std::uint64_t kUnits = 256;
  std::array<std::uint64_t, kMaxSectors + 1> service_{};
  std::uint64_t free_ = 0;
};

}  // namespace gridloom::timing
