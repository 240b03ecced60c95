// One replay: traces on one device under one policy.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/model/profile_file.h"
#include "sim/hardware/device_spec.h"
#include "sim/timing/counters.h"
#include "sim/timing/sampler.h"
#include "sim/timing/work.h"
#include "sim/trace/trace_file.h"

namespace gridloom::launcher {

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
  std::vector<timing::WorkResult> works;
  std::shared_ptr<const timing::Sampler> sampler;
  double host_seconds = 0;
};

/// How far a replay has come; read by another thread.
struct ReplayProgress {
  std::atomic<std::uint64_t> ctas = 0, ended_ctas = 0;
};

using Traces = std::vector<std::shared_ptr<trace::TraceFile>>;

/// Launches keep the order of their streams; different traces and streams run side by side as device and policy let them. Copies
/// and what the host does between launches take no time. `profiles`: what the policy `kernelet` knows of kernels on this device; null:
/// it profiles them first.
Result<ReplayResult> Replay(const sim::DeviceSpec& device, const std::string& policy, const Traces& traces, unsigned threads,
                            const model::ProfileFile* profiles = nullptr, ReplayProgress* progress = nullptr);

}  // namespace gridloom::launcher
