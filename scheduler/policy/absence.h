// What becomes of a tenant's service (time of the device per weight) while it wants nothing, under policies that give
// the next turn to the one with the least.
#pragma once

#include <algorithm>

namespace gridloom::policy {

/// A step of time in which somebody was away.
struct Absence {
  double passed = 0;  ///< time of the step
  double rise = 0;    ///< by so much rose the least service of those at work, with what they had in the step
  double floor = 0;   ///< that least service, after the step
};

/// The service after the step of a tenant that has been away for `away`. It falls behind nobody by being away: it is
/// charged what those at work were given, or what it would have had of a device of its own, up to what the least served
/// one has. And when it has been away for as long as the device would have been due to it, it is owed nothing any more.
/// So nobody saves up time, whatever its weight.
inline double ServiceAfter(const Absence& step, double service, double weight, double away) {
  if (service >= step.floor) return service;
  if ((step.floor - service) * weight <= away) return step.floor;
  return std::min(step.floor, service + std::max(step.passed / weight, step.rise));
}

}  // namespace gridloom::policy
