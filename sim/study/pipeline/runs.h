// Replays of the study's programs: each is traced once with a stream for each data set and once with one for all; the kernels alone are
// replayed, as if all had been launched at the beginning. What a replay took is kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/study/experiment/study.h"
#include "sim/study/replay/job.h"
#include "sim/study/replay/plan.h"

namespace gridloom::study::pipeline {

/// A program as it is replayed.
struct Run {
  std::string workload{};                ///< a name below `workloads` of the experiment's file
  std::string sizes = "workloads";       ///< the key below which its arguments stand
  std::vector<std::string> arguments{};  ///< besides those
  bool one_stream = false;               ///< one for all data sets
  std::string device{};
  std::string policy = "serial";
  bool labels = false;                        ///< L2 with labels
  std::map<std::string, std::string> keys{};  ///< of the device, and their values
  std::size_t stages = 0;                     ///< the first so many kernels of each data set; 0: all. Not with one_stream
  std::map<std::vector<std::size_t>, std::vector<std::uint32_t>> fixed{};  ///< policy::DkaOptions
  std::uint32_t together = 2;                                              ///< likewise
};

/// The serial replay that others are compared with: one data set after the other, kernel after kernel.
Run Serial(const std::string& workload, const std::string& device);
Run Preemptive(const std::string& workload, const std::string& device);
Run Allocated(const std::string& workload, const std::string& device, bool labels);

struct Launch {
  std::size_t stream = 0, stage = 0;  ///< stage: its place in its stream
  double started = 0, ended = 0;      ///< cycles
  double warp_instructions = 0;
  double took() const { return ended - started; }
};

/// What a replay took. Cycles are of SMs.
struct Outcome {
  double cycles = 0;  ///< from the first kernel's begin to the last one's end
  double warp_instructions = 0, thread_instructions = 0;
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double l2_accesses = 0, l2_misses = 0;  ///< sectors
  std::vector<Launch> launches{};
  std::vector<policy::DkaStep> steps{};  ///< of policy dka

  double dram_bytes() const { return dram_read_bytes + dram_write_bytes; }
  double ipc() const { return warp_instructions / cycles; }
};

class Runs {
 public:
  static Result<std::unique_ptr<Runs>> Create(const Settings& settings, const Environment& environment);

  const std::vector<std::string>& workloads() const { return workloads_; }
  const std::vector<std::string>& devices() const { return devices_; }
  const std::string& device() const { return devices_.back(); }  ///< the largest, which most exhibits are about
  /// In the order of `runs`. Several are measured at the same time.
  Result<std::vector<Outcome>> Measure(const std::vector<Run>& runs);
  Result<sim::DeviceSpec> DeviceOf(const Run& run) const;
  Result<std::string> TracePath(const Run& run);

 private:
  Runs(const Settings& settings, const Environment& environment) : settings_(settings), environment_(environment) {}
  Result<FileIdentity> TraceOfRun(const Run& run);
  Result<Measurement> MeasurementOf(const Run& run);

  const Settings& settings_;
  const Environment& environment_;
  std::vector<std::string> workloads_, devices_;
  std::vector<std::pair<std::string, std::string>> keys_;                              // of all devices
  std::vector<std::pair<std::string, std::string>> preemptive_keys_, allocator_keys_;  // and besides, under leftover and under dka
  std::unique_ptr<RateCache> cache_;
  std::unique_ptr<Measurements> measurements_;
  std::map<std::string, FileIdentity> traces_;
};

/// "KEY=VALUE KEY=VALUE"
Result<std::map<std::string, std::string>> KeysFrom(const Settings& settings, const std::string& key);

/// How much faster, in per cent.
inline double Gain(double before, double after) { return 100 * (before / after - 1); }

}  // namespace gridloom::study::pipeline
