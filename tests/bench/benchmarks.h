// The list of benchmarks: input, how a device runs it, how plain C++ runs it, how results are compared.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/bench/device.h"

namespace bench {

/// One benchmark with its input. Results are gathered as doubles.
struct Benchmark {
  std::string name;
  std::string shape;     ///< for the report
  double tolerance = 0;  ///< relative; 0 = equal
  std::function<void(Device&)> upload;
  std::function<void(Device&)> run;  ///< what is timed; must not wait at its end
  std::function<std::vector<double>(Device&)> download;
  std::function<void(int threads)> run_native;
  std::function<std::vector<double>()> native_result;
};

/// `scale` multiplies the amount of work (1 = the sizes of docs/performance.md).
std::vector<Benchmark> AllBenchmarks(double scale);

/// How many values differ by more than the tolerance; -1: there are more or fewer of them.
long Differences(const std::vector<double>& got, const std::vector<double>& want, double tolerance);

}  // namespace bench
