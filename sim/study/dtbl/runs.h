// Replays of the study's programs: each is traced in its flat form and in the one that launches from the device, and the latter is replayed
// in four ways. What a replay took is kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/study/experiment/study.h"
#include "sim/study/replay/plan.h"

namespace gridloom::study::dtbl {

/// The paper's versions of a program (5.2 C). All but the flat one are replays of one trace.
enum class Form : std::uint8_t { kFlat, kCdpIdeal, kDtblIdeal, kCdp, kDtbl };
constexpr const char* kFormNames[] = {"flat", "CDPI", "DTBLI", "CDP", "DTBL"};

struct Run {
  std::string pair{};  ///< program and input: a name below `pairs` of the experiment's file
  Form form = Form::kFlat;
  std::string device{};                       ///< empty: the file's
  std::map<std::string, std::string> keys{};  ///< of the device, and their values
};

/// What a replay took.
struct Outcome {
  double busy_cycles = 0;  ///< SM cycles in which a kernel ran, or one that a kernel launched was pending
  double warp_instructions = 0, thread_instructions = 0;
  double warp_cycles = 0;                                     ///< sum over cycles of resident warps
  double dram_busy_cycles = 0, dram_active_cycles = 0;        ///< of channels
  double launches = 0, wait_cycles = 0;                       ///< by kernels
  double most_bytes = 0, byte_cycles = 0;                     ///< of pending launches
  double joined = 0, unmatched = 0, ordered = 0, spills = 0;  ///< counters of the part dtbl
  double table_most = 0;
  double sms = 0, warps_per_sm = 0;  ///< of the device
  double sm_mhz = 0;

  double warp_activity() const { return 100 * thread_instructions / (32 * warp_instructions); }  ///< per cent
  double dram_efficiency() const { return dram_active_cycles == 0 ? 0 : dram_busy_cycles / dram_active_cycles; }
  double occupancy() const { return 100 * warp_cycles / (busy_cycles * sms * warps_per_sm); }  ///< per cent
  double waiting() const { return launches == 0 ? 0 : wait_cycles / launches; }
  double microseconds() const { return busy_cycles / sm_mhz; }
};

class Runs {
 public:
  static Result<std::unique_ptr<Runs>> Create(const Settings& settings, const Environment& environment);

  const std::vector<std::string>& pairs() const { return pairs_; }
  const std::string& device() const { return device_; }
  /// In the order of `runs`. Several are measured at the same time.
  Result<std::vector<Outcome>> Measure(const std::vector<Run>& runs);
  /// Of all pairs in these forms: outcomes by pair, then by form.
  Result<std::vector<std::vector<Outcome>>> MeasureAll(const std::vector<Form>& forms, const std::map<std::string, std::string>& keys = {},
                                                       const std::string& device = "");
  Result<sim::DeviceSpec> DeviceOf(const Run& run) const;

 private:
  Runs(const Settings& settings, const Environment& environment) : settings_(settings), environment_(environment) {}
  Result<FileIdentity> TraceOfRun(const Run& run);
  Result<Measurement> MeasurementOf(const Run& run);

  const Settings& settings_;
  const Environment& environment_;
  std::vector<std::string> pairs_;
  std::string device_;
  std::map<std::string, std::string> keys_;  // of all replays
  std::unique_ptr<RateCache> cache_;
  std::unique_ptr<Measurements> measurements_;
  std::map<std::string, FileIdentity> traces_;
};

/// "KEY=VALUE KEY=VALUE"
Result<std::map<std::string, std::string>> KeysFrom(const Settings& settings, const std::string& key);

}  // namespace gridloom::study::dtbl
