// Which CTAs of a grid make a slice, and what a launch of one puts into the hidden parameters (docs/passes.md, slice).
//
// CTAs are numbered in the order of %ctaid.x, then .y, then .z; a slice is `count` consecutive ones, launched as a grid
// of count x 1 x 1. Its CTA i is CTA first + i of the original grid.
#pragma once

#include <cstdint>

#include "rewriter/passes/pass.h"

namespace gridloom::passes {

/// Shape of a grid; 1 to 2^31-1 in x, 1 to 65535 in y and z.
struct GridShape {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// %ctaid of the CTA with this number.
GridShape CtaAt(const GridShape& grid, std::uint64_t number);

/// The most CTAs that a slice beginning at `first` may have: what is left of the grid, and no more than the 32-bit
/// arithmetic of the rewritten code bears (2^30 and fewer near x = 2^31; never 0 before the end of the grid).
std::uint64_t LongestSlice(const GridShape& grid, std::uint64_t first);

/// n / divisor = (2n * multiplier >> 32) >> shift for every n below 2^31. Divisor 1 to 2^31-1.
struct Reciprocal {
  std::uint32_t multiplier = 0, shift = 0;
};
Reciprocal ReciprocalOf(std::uint32_t divisor);

/// The value of a hidden parameter for the slice of `grid` that begins at `first`.
std::uint64_t HiddenValue(HiddenRole role, const GridShape& grid, std::uint64_t first, std::uint64_t grid_id);

}  // namespace gridloom::passes
