// CTAs of a launch that differ by a constant step, as one: what most CTAs of a grid are, so that capture need not make
// something of each.
#pragma once

#include <cstdint>
#include <utility>

#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

/// CTAs of consecutive indices with one trace, each of them shifted by the same steps from the one before.
struct CtaRun {
  std::uint64_t index = 0, count = 1;  ///< of the first one; how many
  LoadedCta first{};
  Shifts steps{};  ///< of its shifts; empty for one CTA, and where there are none

  /// Calls use(index, cta) for each, in order.
  template <typename Use>
  void ForEach(Use use) const {
    if (count == 1) return use(index, first);
    LoadedCta cta = first;
    for (std::uint64_t i = 0; i < count; ++i) {
      use(index + i, std::as_const(cta));
      for (std::size_t a = 0; a < steps.size(); ++a) cta.shifts[a] += steps[a];
    }
  }
};

}  // namespace gridloom::trace
