// Where the time of a program's works is simulated: in this process, or by the broker together with other programs'.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "interpose/session/timing_table.h"
#include "sim/trace/kernel_trace.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

/// Works are numbered as in their HostAction, from 1 in the order of Add and AddLaunch.
class Timeline {
 public:
  virtual ~Timeline() = default;

  /// A work that is no launch.
  virtual void Add(const trace::HostAction& action) = 0;
  /// A launch; `opens`: it may launch others. What takes its CTAs; null: it is not simulated. `code` lives as long as the process.
  virtual std::shared_ptr<trace::CtaSink> AddLaunch(const trace::HostAction& action, const trace::KernelCode& code,
                                                    const trace::LaunchShape& shape, bool opens) = 0;
  virtual void CloseGroup(std::uint64_t group) = 0;

  /// The host waits for the end of works. False when it had to give up.
  virtual bool Wait(std::span<const std::uint64_t> works) = 0;
  /// Whether they have ended at the host's time; nothing when that is not known.
  virtual std::optional<bool> Ask(std::span<const std::uint64_t> works) = 0;
  /// When the work ended, in simulated nanoseconds.
  virtual std::optional<double> EndNs(std::uint64_t work) = 0;
  /// Empty, or why nothing is simulated any more.
  virtual std::string problem() const = 0;
  /// The program ends: simulates what there is.
  virtual TimingTable Finish() = 0;
};

}  // namespace gridloom::session
