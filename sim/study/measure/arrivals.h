// The upper level of two-level simulations: kernels arrive by a Poisson process, a planner decides which of those that
// wait share the device, and they proceed at rates that were measured below (co_run.h). Discrete events, no cycles.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/co_schedule.h"

namespace gridloom::study {

/// A kernel that arrives again and again.
struct Kind {
  std::uint64_t profile = 0;  ///< its number for the planner
  double ctas = 0;            ///< thread blocks of one instance
};

/// Thread blocks per cycle of the device. Kinds are numbers in the list given to SimulateArrivals.
class Rates {
 public:
  virtual ~Rates() = default;
  /// With as many blocks as an SM holds.
  virtual Result<double> Alone(std::size_t kind) = 0;
  /// With so many blocks per SM of each.
  virtual Result<std::array<double, 2>> Together(std::size_t a, std::uint32_t ctas_a, std::size_t b,
                                                 std::uint32_t ctas_b) = 0;
  /// Blocks per SM of `next` that find room beside a full load of `first`; 0: none, and `first` runs alone.
  virtual std::uint32_t LeftOver(std::size_t first, std::size_t next) = 0;
  /// Blocks per SM of a full load.
  virtual std::uint32_t Full(std::size_t kind) = 0;
};

struct Arrivals {
  std::uint64_t instances = 1000;  ///< of each kind
  double interarrival = 0;         ///< mean, cycles between two instances of one kind
  std::uint64_t seed = 1;
};

struct ArrivalResult {
  double cycles = 0;           ///< until the last instance has ended
  double idle = 0;             ///< of them, those in which nothing waited
  double together = 0;         ///< of them, those in which two kernels ran side by side
  std::uint64_t plans = 0;     ///< times that the planner was asked
  double mean_turnaround = 0;  ///< cycles from arrival to end
};

/// Instances of a kind run in their order of arrival. Two that were planned together stay together until one of them
/// ends (Algorithm 1, line 8); one that runs alone is planned anew when another arrives. What the planner finds nothing
/// for, and all with a null planner (BASE, kernel consolidation), runs first come, first served: the first with all the
/// blocks that an SM holds, the next with what room is left.
Result<ArrivalResult> SimulateArrivals(const std::vector<Kind>& kinds, Rates& rates, policy::CoSchedulePlanner* planner,
                                       const Arrivals& arrivals);

}  // namespace gridloom::study
