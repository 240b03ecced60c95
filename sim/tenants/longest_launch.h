// The launch of a tenant that ran longest, for the limit on what one may run (timing_launch_s).
#pragma once

#include <string>

#include "sim/timing/cycle.h"

namespace gridloom::tenants {

struct LongestLaunch {
  std::string kernel;
  timing::Cycle cycles = 0;  ///< of the device, from its first CTA's first cycle to its end; 0: there was none
};

}  // namespace gridloom::tenants
