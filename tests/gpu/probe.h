// Shared by the probes of tests/gpu: programs that measure a GPU and print "name value" lines, times in microseconds
// unless a name says otherwise. scripts/check-gpu runs them on a machine with a GPU; they run under the virtual GPU,
// too.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define PROBE(call)                                                        \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

namespace probe {

inline void Print(const std::string& name, double value) {
  std::printf("%s %.4f\n", name.c_str(), value);
  std::fflush(stdout);
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Microseconds of the host for one call of `work`.
template <class Work>
double HostTime(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// The median over `runs` calls; `after`, not counted, follows each.
template <class Work, class After>
double MedianHostTime(int runs, const Work& work, const After& after) {
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    times.push_back(HostTime(work));
    after();
  }
  return Median(times);
}

template <class Work>
double MedianHostTime(int runs, const Work& work) {
  return MedianHostTime(runs, work, [] {});
}

/// Microseconds between two events around what `work` gives to `stream`, the median over `runs`.
template <class Work>
double DeviceTime(int runs, cudaStream_t stream, const Work& work) {
  cudaEvent_t begin, end;
  PROBE(cudaEventCreate(&begin));
  PROBE(cudaEventCreate(&end));
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    PROBE(cudaEventRecord(begin, stream));
    work();
    PROBE(cudaEventRecord(end, stream));
    PROBE(cudaEventSynchronize(end));
    float ms = 0;
    PROBE(cudaEventElapsedTime(&ms, begin, end));
    times.push_back(ms * 1000.0);
  }
  PROBE(cudaEventDestroy(begin));
  PROBE(cudaEventDestroy(end));
  return Median(times);
}

}  // namespace probe
