// One replay: traces on one device under one policy.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/model/profile_file.h"
#include "scheduler/policy/dka.h"
#include "sim/device/device_spec.h"
#include "sim/timing/counters.h"
#include "sim/timing/sampler.h"
#include "sim/timing/work.h"
#include "sim/trace/trace_file.h"

namespace gridloom::study {

/// What the launches of one kernel took together.
struct KernelTimes {
  std::string name;
  std::uint64_t launches = 0, ctas = 0, warp_instructions = 0, thread_instructions = 0;
  std::uint64_t cycles = 0;   ///< from each launch's first CTA to its last one's end
  timing::Counters counters;  ///< of the whole device, while a launch of it ran
};

struct ReplayResult {
  std::uint64_t cycles = 0;  ///< SM cycles until everything had ended
  timing::Counters counters;
  std::vector<KernelTimes> kernels;  ///< the slowest first
  /// By trace: SM cycles until all that its program gave the device, and its calls, had ended.
  std::vector<std::uint64_t> programs;
  std::vector<timing::WorkResult> works;
  std::shared_ptr<const timing::Sampler> sampler;
  std::vector<std::string> notes;  ///< sentences: what did not overlap on a device that would have let it
  double host_seconds = 0;
};

/// How far a replay has come; read by another thread.
struct ReplayProgress {
  std::atomic<std::uint64_t> ctas = 0, ended_ctas = 0;
};

using Traces = std::vector<std::shared_ptr<trace::TraceFile>>;

struct ReplayInputs {
  /// What the policy `kernelet` knows of kernels on this device; null: it profiles them.
  const model::ProfileFile* profiles = nullptr;
  /// All launches are there from the beginning and keep the order of their streams alone; copies and the programs' own
  /// time do not exist.
  bool kernels_only = false;
  std::size_t kept_ctas = 0;  ///< of the sampler, one by one; 0: as many as it keeps by default
  policy::DkaOptions dka{};   ///< of the policy `dka`
  std::size_t stages = 0;     ///< kernels_only: the first so many launches of each stream; 0: all of them
  /// Warp instructions of one launch, beyond which the replay fails; 0: any number.
  std::uint64_t most_instructions = 0;
};

/// Each traced program makes its calls again (sim/timing/trace_player.h); what they give the device runs side by side
/// as device and policy let it.
Result<ReplayResult> Replay(const sim::DeviceSpec& device, const std::string& policy, const Traces& traces,
                            unsigned threads, const ReplayInputs& inputs = {}, ReplayProgress* progress = nullptr);

}  // namespace gridloom::study
