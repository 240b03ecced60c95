#include "tests/bench/benchmarks.h"

#include <algorithm>
#include <cmath>

namespace bench {

#define GL_LISTED(name) GL_BENCHMARK(name);
#include "benchmark_list.def"
#undef GL_LISTED

std::span<const NamedBenchmark> AllBenchmarks() {
  static constexpr NamedBenchmark kAll[] = {
#define GL_LISTED(name) {#name, &MakeBenchmark_##name},
#include "benchmark_list.def"
#undef GL_LISTED
  };
  return kAll;
}

long Differences(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  if (got.size() != want.size()) return -1;
  double largest = 0;
  for (const double v : want) largest = std::max(largest, std::fabs(v));
  long bad = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    bad += !(std::fabs(got[i] - want[i]) <= tolerance * (std::fabs(want[i]) + 1e-2 * largest));
  return bad;
}

}  // namespace bench
