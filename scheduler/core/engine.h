// What runs the slices that the scheduler grants: tenants behind the broker, a thread of this process, a model.
#pragma once

#include <cstdint>

namespace gridloom::sched {

/// Rising number of a launch; never used twice.
using LaunchId = std::uint64_t;

class Engine {
 public:
  virtual ~Engine() = default;
  /// A steady clock: nanoseconds where slices run in real time, cycles of a model otherwise.
  virtual std::uint64_t now() = 0;
  /// The CTAs of the launch before `end` may run. Comes with a larger `end` each time; what was granted before still
  /// holds.
  virtual void Grant(LaunchId launch, std::uint64_t end) = 0;
};

}  // namespace gridloom::sched
