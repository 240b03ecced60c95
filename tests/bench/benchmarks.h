// The list of benchmarks: input, how a device runs it, how plain C++ runs it, how results are compared.
// A benchmark NAME is its three forms in tests/bench/kernels and its name in the list of tests/bench/CMakeLists.txt.
#pragma once

#include <functional>
#include <span>
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

/// Defines the benchmark of that name: a function that makes it, with its input. `scale` multiplies the amount of work
/// (1 = the sizes of docs/performance.md).
#define GL_BENCHMARK(name) Benchmark MakeBenchmark_##name(double scale)

struct NamedBenchmark {
  std::string_view name;
  Benchmark (*make)(double scale);
};
/// In the order of the list.
std::span<const NamedBenchmark> AllBenchmarks();

/// How many values differ by more than the tolerance; -1: there are more or fewer of them.
long Differences(const std::vector<double>& got, const std::vector<double>& want, double tolerance);

}  // namespace bench
