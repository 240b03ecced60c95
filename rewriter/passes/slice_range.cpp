#include "rewriter/passes/slice_range.h"

#include <algorithm>
#include <bit>

namespace gridloom::passes {

GridShape CtaAt(const GridShape& grid, std::uint64_t number) {
  const std::uint64_t row = number / grid.x;
  return {static_cast<std::uint32_t>(number % grid.x), static_cast<std::uint32_t>(row % grid.y),
          static_cast<std::uint32_t>(row / grid.y)};
}

// The rewritten code adds %ctaid.x of the slice to the first CTA's x and divides the sum by grid.x, then the same with
// the quotient and y: both sums have to stay below 2^31. The first does by the bound in x; the quotient is below 2^30
// by either bound (grid.x = 1: by the second one), and y below 2^16.
std::uint64_t LongestSlice(const GridShape& grid, std::uint64_t first) {
  constexpr std::uint64_t kBelow = std::uint64_t{1} << 31;
  return std::min({grid.count() - first, kBelow - CtaAt(grid, first).x, kBelow / 2});
}

// Round-up method (Granlund and Montgomery, 1994, theorem 4.2 with N = 31): with l = ceil(log2 d) and
// m = ceil(2^(31+l) / d), n/d = n*m >> (31+l) for every n < 2^31, and m < 2^32 + 1; 2^32 itself does not come about,
// since for d = 2^l it is 2^31.
Reciprocal ReciprocalOf(std::uint32_t divisor) {
  const std::uint32_t shift = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
  const std::uint64_t power = std::uint64_t{1} << (31 + shift);
  return {static_cast<std::uint32_t>((power + divisor - 1) / divisor), shift};
}

std::uint64_t HiddenValue(HiddenRole role, const GridShape& grid, std::uint64_t first, std::uint64_t grid_id) {
  switch (role) {
    case HiddenRole::kFirstCtaX: return CtaAt(grid, first).x;
    case HiddenRole::kFirstCtaY: return CtaAt(grid, first).y;
    case HiddenRole::kFirstCtaZ: return CtaAt(grid, first).z;
    case HiddenRole::kGridX: return grid.x;
    case HiddenRole::kGridY: return grid.y;
    case HiddenRole::kGridZ: return grid.z;
    case HiddenRole::kReciprocalX: return ReciprocalOf(grid.x).multiplier;
    case HiddenRole::kShiftX: return ReciprocalOf(grid.x).shift;
    case HiddenRole::kReciprocalY: return ReciprocalOf(grid.y).multiplier;
    case HiddenRole::kShiftY: return ReciprocalOf(grid.y).shift;
    case HiddenRole::kGridId: return grid_id;
    // Roles of profilers, which run whole: a part of a grid does not change them.
    case HiddenRole::kBlockX:
    case HiddenRole::kBlockY:
    case HiddenRole::kBlockZ:
    case HiddenRole::kEndedTable:
    case HiddenRole::kEndedShift: return 0;
  }
  return 0;
}

}  // namespace gridloom::passes
