// GRIDLOOM_TIMING: what the program gives the device is simulated while it runs; a table of its kernels at exit. Also without the
// setting where a broker simulates all of its programs.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "interpose/session/operation.h"
#include "interpose/session/timeline.h"
#include "rewriter/support/result.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

class LiveTiming {
 public:
  /// Null when it is not wanted or cannot be (which is logged). Called when there is a device.
  static std::unique_ptr<LiveTiming> Make();
  /// What is wrong with the settings.
  static Status CheckSettings();

  /// The next work, whose number is one more than the last one's. `kernel` of a launch is given its CTAs' way to the model.
  void Add(const trace::HostAction& action, KernelOp* kernel);
  void Close(std::uint64_t group) { timeline_->CloseGroup(group); }
  void Wait(std::span<const std::uint64_t> works);
  /// Nothing when the model does not know.
  std::optional<bool> Ask(std::span<const std::uint64_t> works);
  std::optional<double> EndNs(std::uint64_t work) const;

  /// The program ends: simulates what there is, and shows it.
  void Finish();

 private:
  explicit LiveTiming(std::unique_ptr<Timeline> timeline) : timeline_(std::move(timeline)) {}
  void Complain();

  const std::unique_ptr<Timeline> timeline_;
  std::mutex mutex_;
  std::string complaint_;  ///< that was logged
};

}  // namespace gridloom::session
