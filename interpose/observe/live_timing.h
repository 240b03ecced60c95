// GRIDLOOM_TIMING: what the program gives the device is simulated while it runs; a table of its kernels at exit. Also
// without the setting where a broker simulates all of its programs.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "interpose/objects/operation.h"
#include "interpose/observe/timeline.h"
#include "rewriter/support/result.h"
#include "sim/exec/ranges/range_checks.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

class Observers;

/// What the timing model gets before a work, or with it.
struct BeforeWork {
  std::uint64_t storage = 0;    ///< of a copy: as Timeline::BeforeCopy
  exec::RangedKernel ranged{};  ///< of a launch; without a program: nothing comes before it
};

class LiveTiming {
 public:
  /// Null when it is not wanted or cannot be (which is logged). Called when there is a device.
  static std::unique_ptr<LiveTiming> Make(Observers& observers);
  /// What is wrong with the settings.
  static Status CheckSettings(const Observers& observers);

  /// The ranges that the simulated device goes by; none where it follows nobody's memory, or nothing is simulated here.
  static std::optional<trace::LaunchInfo::Ranges> RangesWanted(const Observers& observers);

  /// What comes before a work of a stream. The host may wait for simulated time.
  BeforeWork Prepare(Context& context, const trace::HostAction& action, const Operation& operation);
  /// Before a graph is launched that copies so many bytes; as Prepare.
  void PrepareGraph(std::uint64_t to_device, std::uint64_t to_host);

  /// The next work, whose number is one more than the last one's. `kernel` of a launch is given its CTAs' way to the
  /// model.
  void Add(const trace::HostAction& action, KernelOp* kernel, const BeforeWork& before);
  void Close(std::uint64_t group) { timeline_->CloseGroup(group); }
  /// `sees`: the host may look at results when it goes on.
  void Wait(std::span<const std::uint64_t> works, bool sees);
  /// Nothing when the model does not know.
  std::optional<bool> Ask(std::span<const std::uint64_t> works, bool sees);
  /// Parts of the program overlap: its host waits only where it sees something.
  bool overlapped() const { return timeline_->overlapped(); }
  std::optional<double> EndNs(std::uint64_t work) const;

  /// The program ends: simulates what there is, and shows it.
  void Finish();

 private:
  LiveTiming(Observers& observers, std::unique_ptr<Timeline> timeline)
      : observers_(observers), timeline_(std::move(timeline)) {}
  void Complain();
  void SayWhyNothingOverlaps() const;

  Observers& observers_;
  const std::unique_ptr<Timeline> timeline_;
  std::mutex mutex_;
  std::string complaint_;  ///< that was logged
};

}  // namespace gridloom::session
