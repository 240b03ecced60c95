// Runs a kernel, its profiler and its released form, and compares the ranges that the latter two report with the pages
// that the kernel really touches (docs/ranges.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewriter/passes/range_calls.h"
#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {

struct RangeCheck {
  bool regular = false;
  std::string reason;                       ///< why not
  std::string fault;                        ///< the first launch that failed, or pass that did
  std::string missed;                       ///< the first page that was touched and not reported
  std::string unbalanced;                   ///< the first page that was set and not released
  bool same_results = true;                 ///< the released kernel wrote what the kernel wrote
  std::uint64_t touched = 0, reported = 0;  ///< pages, summed over the CTAs
  std::uint64_t set_calls = 0;

  bool sound() const { return fault.empty() && missed.empty() && unbalanced.empty() && same_results; }
};

/// Allocations that the kernel writes: what is in them is compared after each run, and restored before it.
struct RangeArray {
  std::uint64_t address = 0, bytes = 0;
};

RangeCheck CheckRanges(Executor& executor, const std::string& ptx, const std::string& kernel,
                       const exec::LaunchParams& launch, const std::vector<RangeArray>& arrays, passes::RangeForm form);

}  // namespace gridloom::test
