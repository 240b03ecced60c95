// What slicing costs, and the smallest slice that is cheap enough: Kernelet's rule, section 4.1.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

struct SliceCost {
  std::uint64_t size = 0;  ///< CTAs per slice
  double overhead = 0;     ///< time in slices over time whole, less 1: 0.02 is 2 %
};

struct SmallestSlice {
  std::uint64_t size = 0;           ///< CTAs; that of the grid when no smaller one is cheap enough
  double whole_seconds = 0;         ///< the grid as the program launches it
  std::vector<SliceCost> measured;  ///< what was tried, by size
};

/// Finds the smallest size, a multiple of `step`, whose overhead is at most `percent`, up to a sixteenth: sizes are
/// doubled until one is cheap enough, then halved towards the last that was not. `seconds(size)` runs the grid in such
/// slices and answers how long that took, size 0: whole; best of several runs, since noise of more than `percent`
/// decides otherwise. The grid runs a dozen times or so, so what it does to memory has to bear that.
SmallestSlice FindSmallestSlice(std::uint64_t ctas, const std::function<double(std::uint64_t size)>& seconds,
                                double percent = 2, std::uint64_t step = 1);

}  // namespace bench
