// Replays of the study's programs: each is traced in the form that a scheme needs, and replayed as that scheme runs it. What a replay took
// is kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/study/experiment/study.h"
#include "sim/study/replay/plan.h"

namespace gridloom::study::pagoda {

/// Ways to run many narrow tasks. A new one is a row of kSchemes.
enum class Scheme : std::uint8_t { kSerial, kHyperQ, kGraph, kFusion, kGemtc, kBatching, kPagoda };

struct SchemeRow {
  Scheme scheme;
  const char* name;
  const char* form;    ///< of the program (docs/pagoda-workloads.md)
  const char* policy;  ///< of the replay
  /// Tasks have no order, as spawns have none: as many streams as the programs have, so that none waits for another.
  bool independent = false;
  bool batches = false;  ///< tasks are spawned in batches (Run::spawn)
};
const SchemeRow& RowOf(Scheme scheme);

struct Run {
  std::string program{};  ///< a name below `programs` of the experiment's file
  Scheme scheme = Scheme::kHyperQ;
  std::vector<std::string> arguments{};       ///< behind those of the file
  std::string device{};                       ///< empty: the file's
  std::map<std::string, std::string> keys{};  ///< of the device, and their values
  /// Of schemes that batch, what the program's host does: "batches", nothing for a batch before the one before it has ended, not even
  /// copies of inputs; or "free", which leaves it to the runtime.
  std::string spawn = "batches";
};

/// What a replay took. Cycles are the SMs'.
struct Outcome {
  double cycles = 0;                          ///< until all that the program gave the device, and its calls, had ended
  double kernel_cycles = 0, copy_cycles = 0;  ///< in which a kernel ran; in which a copy was done
  double span_cycles = 0;                     ///< from the submission of the first kernel to the end of the last
  double latency_cycles = 0;                  ///< from the submission of a kernel to its end, mean
  double launches = 0, warp_instructions = 0;
  double task_warp_cycles = 0;       ///< warp cycles of tasks: of kernels, or of a MasterKernel's warps that had one
  double sms = 0, warps_per_sm = 0;  ///< of the device
  double sm_mhz = 0;

  double milliseconds() const { return cycles / sm_mhz / 1000; }
  double span_ms() const { return span_cycles / sm_mhz / 1000; }
  double latency_us() const { return latency_cycles / sm_mhz; }
  double copy_percent() const { return 100 * copy_cycles / (copy_cycles + kernel_cycles); }
  double occupancy() const { return 100 * task_warp_cycles / (span_cycles * sms * warps_per_sm); }  ///< per cent
};

class Runs {
 public:
  static Result<std::unique_ptr<Runs>> Create(const Settings& settings, const Environment& environment);

  const std::vector<std::string>& programs() const { return programs_; }
  const std::string& device() const { return device_; }
  /// Of the `programs` those that a scheme can run: how many tasks they have must be known for fusion, graphs and batches.
  bool Can(const std::string& program, Scheme scheme) const;
  /// In the order of `runs`. Several are measured at the same time.
  Result<std::vector<Outcome>> Measure(const std::vector<Run>& runs);
  Result<sim::DeviceSpec> DeviceOf(const Run& run) const;
  /// The program's own form for the host: milliseconds; negative where the program is not there.
  Result<double> HostMilliseconds(const std::string& program, const std::vector<std::string>& arguments) const;

 private:
  Runs(const Settings& settings, const Environment& environment) : settings_(settings), environment_(environment) {}
  Result<std::uint64_t> BatchOf(const Run& run, const sim::DeviceSpec& device) const;
  Result<FileIdentity> TraceOfRun(const Run& run);
  Result<Measurement> MeasurementOf(const Run& run);

  const Settings& settings_;
  const Environment& environment_;
  std::vector<std::string> programs_;
  std::vector<std::string> uncounted_, unshared_;
  std::string device_;
  std::map<std::string, std::string> keys_;  // of the file's device
  std::unique_ptr<RateCache> cache_;
  std::unique_ptr<Measurements> measurements_;
  std::map<std::string, FileIdentity> traces_;
};

/// "KEY=VALUE KEY=VALUE". The key `spawn` is Run::spawn.
Result<std::map<std::string, std::string>> KeysFrom(const Settings& settings, const std::string& key);

}  // namespace gridloom::study::pagoda
