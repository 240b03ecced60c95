// Measurements on the timing model that a study asks for by what decides about their numbers: made on several threads,
// kept on disk, and made once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/study/measure/rate_cache.h"

namespace gridloom::study {

/// How far measurements are: how many are done, of how many, what the last one was.
using MeasurementProgress = std::function<void(std::size_t done, std::size_t all, const std::string& what)>;

struct Measurement {
  std::string what;  ///< for people
  std::string key;   ///< all that decides about the numbers; begins with MeasurementKey
  std::function<Result<std::vector<double>>()> measure;
};

/// The beginning of a key: a version of the timing model and of how it is measured, and all values of the device.
std::string MeasurementKey(const sim::DeviceSpec& device);

class Measurements {
 public:
  /// `cache` must outlive this.
  Measurements(RateCache& cache, unsigned threads, MeasurementProgress progress);

  /// Makes those that are not kept. Numbers do not depend on the number of threads.
  Status Make(const std::vector<Measurement>& wanted);
  /// Numbers of one, made if need be.
  Result<std::vector<double>> Get(const Measurement& wanted);
  /// Numbers of a measurement, made if need be; there must be `count` of them.
  Result<std::vector<double>> Get(const Measurement& wanted, std::size_t count);
  Result<double> GetNumber(const Measurement& wanted);

 private:
  RateCache& cache_;
  const unsigned threads_;
  const MeasurementProgress progress_;
};

}  // namespace gridloom::study
