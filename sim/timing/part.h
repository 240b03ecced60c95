// A part of proposed hardware: what an engine knows of it. Parts and the list of their kinds are in sim/hardware.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sim/timing/ports.h"

namespace gridloom::timing {

/// A counter that a part brings; its stall reasons have the unit "cycles".
struct PartCounter {
  std::string_view name, unit, meaning;
};

/// One object for one engine.
class Part {
 public:
  virtual ~Part() = default;
  /// Takes its places, once. `input` lives as long as the engine.
  virtual void Attach(Ports& ports, DeviceInput& input) = 0;
  /// Gives the part's counters, in the order of their declaration: sums since the beginning. Between windows.
  virtual void Count(std::span<std::uint64_t> /*values*/) const {}
  /// How many there are.
  virtual std::size_t counters() const { return 0; }
};

using Parts = std::vector<std::shared_ptr<Part>>;

}  // namespace gridloom::timing
