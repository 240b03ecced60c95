#include "tests/bench/smallest_slice.h"

#include <catch2/catch.hpp>

#include "rewriter/passes/slice_range.h"

using namespace gridloom;
using bench::FindSmallestSlice;

namespace {

/// A grid of `ctas` CTAs that takes one second, and `launch` seconds for every slice.
std::function<double(std::uint64_t)> Model(std::uint64_t ctas, double launch, unsigned* runs = nullptr) {
  return [=](std::uint64_t size) {
    if (runs != nullptr) ++*runs;
    return size == 0 ? 1.0 : 1.0 + launch * static_cast<double>((ctas + size - 1) / size);
  };
}

}  // namespace

TEST_CASE("FindSmallestSlice_CostPerSlice_MeetsTheLimitUpToASixteenth") {
  for (const std::uint64_t ctas : {100, 1000, 65536, 1000000}) {
    for (const double launch : {1e-6, 1e-5, 1e-4, 1e-3}) {
      unsigned runs = 0;
      const auto found = FindSmallestSlice(ctas, Model(ctas, launch, &runs));
      INFO(ctas << " CTAs, " << launch << " s per slice: " << found.size);
      const std::uint64_t slices = (ctas + found.size - 1) / found.size;
      CHECK(static_cast<double>(slices) * launch <= 0.02 * 1.000001);
      if (found.size > 1) {
        const std::uint64_t smaller = found.size - std::max<std::uint64_t>(1, found.size / 15);
        CHECK(static_cast<double>((ctas + smaller - 1) / smaller) * launch > 0.02 * 0.999999);
      }
      CHECK(runs < 30);
    }
  }
}

TEST_CASE("FindSmallestSlice_FreeOrHopeless_OneCtaOrTheWholeGrid") {
  CHECK(FindSmallestSlice(500, Model(500, 0)).size == 1);
  CHECK(FindSmallestSlice(500, Model(500, 0.5)).size == 500);
  CHECK(FindSmallestSlice(1, Model(1, 0.5)).size == 1);
}

TEST_CASE("FindSmallestSlice_LimitAndStep_AreKept") {
  const auto found = FindSmallestSlice(10000, Model(10000, 1e-4), 10, 132);
  CHECK(found.size % 132 == 0);
  CHECK(found.whole_seconds == 1.0);
  for (const auto& cost : found.measured) CHECK((cost.overhead <= 0.1) == (cost.size >= found.size));
}

// Every slice of every grid, in all ways to cut it, computed as the rewritten code does.
TEST_CASE("SliceRange_IndicesOfEveryCta_AreThoseOfTheGrid") {
  using namespace gridloom::passes;
  const GridShape grids[] = {{1, 1, 1}, {7, 1, 1},          {1, 5, 1},         {1, 1, 4},
                             {3, 4, 5}, {2147483647, 3, 2}, {1, 65535, 65535}, {65537, 65535, 3}};
  for (const GridShape& grid : grids) {
    const std::uint64_t total = grid.count();
    for (std::uint64_t first = 0; first < total; first += std::max<std::uint64_t>(1, total / 37)) {
      const std::uint64_t longest = LongestSlice(grid, first);
      REQUIRE(longest > 0);
      for (std::uint64_t i = 0; i < longest; i += std::max<std::uint64_t>(1, (longest - 1) / 5)) {
        const auto value = [&](HiddenRole role) {
          return static_cast<std::uint32_t>(HiddenValue(role, grid, first, 0));
        };
        const auto divide = [](std::uint32_t n, std::uint32_t multiplier, std::uint32_t shift) {
          return static_cast<std::uint32_t>((std::uint64_t{n << 1} * multiplier) >> 32) >> shift;
        };
        const std::uint32_t n = static_cast<std::uint32_t>(i) + value(HiddenRole::kFirstCtaX);
        const std::uint32_t q = divide(n, value(HiddenRole::kReciprocalX), value(HiddenRole::kShiftX));
        const std::uint32_t m = q + value(HiddenRole::kFirstCtaY);
        const std::uint32_t p = divide(m, value(HiddenRole::kReciprocalY), value(HiddenRole::kShiftY));
        const GridShape want = CtaAt(grid, first + i);
        CHECK(n - q * grid.x == want.x);
        CHECK(m - p * grid.y == want.y);
        CHECK(p + value(HiddenRole::kFirstCtaZ) == want.z);
      }
    }
  }
}
