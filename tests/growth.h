// How the time of something grows with its input: for tests that nothing takes the square of what a file says.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>

namespace gridloom::testing {

/// How many times as large the larger input is, and what a time in proportion to it may be a multiple of: 16 and what
/// caches and other programs add. One that grows with the square is 256 times as long.
inline constexpr std::size_t kLarger = 16;
inline constexpr double kLinear = 90;

/// The processor time of this thread for `work(kLarger * size)` over that for `work(size)`, the best of three runs
/// each.
template <typename Work>
double Growth(std::size_t size, const Work& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const auto best = [&](std::size_t of) {
    double least = 1e9;
    for (int run = 0; run < 3; ++run) {
      const double begin = now();
      work(of);
      least = std::min(least, now() - begin);
    }
    return least;
  };
  const double one = best(size);
  return best(kLarger * size) / one;
}

}  // namespace gridloom::testing
