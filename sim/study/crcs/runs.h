// Replays of the study's programs: each is traced once with the ranges of its CTAs, and replayed on a device under a policy. What a replay
// took is kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/study/experiment/study.h"
#include "sim/study/replay/plan.h"

namespace gridloom::study::crcs {

/// A program as it is replayed.
struct Run {
  std::string workload = {};                ///< a name below `workloads` of the experiment's file
  std::vector<std::string> arguments = {};  ///< of the program, besides those of the file
  std::string device = {};                  ///< empty: the file's
  std::string policy = "serial";
  std::map<std::string, std::string> keys = {};  ///< of the device, and their values
};

/// What a replay took, in milliseconds. The parts of a run under `serial` follow each other; those of others overlap.
struct Times {
  double total = 0;
  double read = 0, to_device = 0, first = 0, middle = 0, last = 0, to_host = 0, write = 0;  ///< first, middle, last: kernels
  double profilers = 0;                                                                     ///< the sum of theirs
  double kernels = 0;                                                                       ///< how many there were, without profilers
  double kernel_instructions = 0, profiler_instructions = 0;                                ///< of warps
  double most_references = 0, most_kernels = 0;                                             ///< counters of the part `crcs`

  double outside() const { return total - read - to_device - first - middle - last - to_host - write; }
  double all_kernels() const { return first + middle + last; }
};

/// How many of each kernel's CTAs have ended by when.
struct Progress {
  static constexpr std::size_t kSteps = 20;
  double total = 0;                          ///< ms
  double prelude_ends = 0;                   ///< ms: the last byte has been read from storage
  std::vector<std::vector<double>> kernels;  ///< ms, by kernel: when i / kSteps of its CTAs had ended, i from 1 on
};

class Runs {
 public:
  static Result<std::unique_ptr<Runs>> Create(const Settings& settings, const Environment& environment);

  const std::vector<std::string>& workloads() const { return workloads_; }
  const std::string& device() const { return device_; }  ///< the file's
  /// In the order of `runs`. Several are measured at the same time.
  Result<std::vector<Times>> Measure(const std::vector<Run>& runs);
  Result<Progress> MeasureProgress(const Run& run);
  /// The device of a run, with the parts that its policy needs.
  Result<sim::DeviceSpec> DeviceOf(const Run& run) const;

 private:
  Runs(const Settings& settings, const Environment& environment) : settings_(settings), environment_(environment) {}
  Result<FileIdentity> TraceOfRun(const Run& run);
  Result<Measurement> MeasurementOf(
      const Run& run, const std::string& what,
      std::function<Result<std::vector<double>>(const Run&, const sim::DeviceSpec&, const std::string&)> measure);

  const Settings& settings_;
  const Environment& environment_;
  std::vector<std::string> workloads_;
  std::string device_, storage_;
  std::unique_ptr<RateCache> cache_;
  std::unique_ptr<Measurements> measurements_;
  std::map<std::string, FileIdentity> traces_;
};

/// How much faster, in per cent.
inline double Gain(double before, double after) { return 100 * (before / after - 1); }

}  // namespace gridloom::study::crcs
