// GRIDLOOM_RANGES, and where time is simulated on a device that goes by ranges (docs/overlap.md): before each grid, the
// profiler of its kernel and the kernel with release code run, too, for the trace and for the timing model
// (docs/ranges.md). What that has written is undone: the grid itself, and the program, see nothing of it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/objects/operation.h"
#include "interpose/observe/device_turns.h"
#include "rewriter/analysis/call_graph.h"
#include "rewriter/support/result.h"
#include "sim/exec/ranges/range_checks.h"
#include "sim/exec/ranges/written_memory.h"
#include "sim/timing/live/overlap_outcome.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

/// The one place where forms of passes and those of traces meet.
passes::RangeForm PassFormOf(trace::LaunchInfo::Ranges form);

class Observers;

class RangeCapture {
 public:
  /// Null unless ranges are wanted.
  static std::unique_ptr<RangeCapture> Make(Observers& observers);
  /// An error that says what is wrong with the setting.
  static Status CheckSetting();

  /// Who launches a grid.
  enum class Origin : std::uint8_t { kStream, kGraph, kKernel };
  /// What the timing model is to expect of a launch that is put into a stream. `program` is null where it runs without
  /// ranges, as far as that is known before it runs. Thread-safe.
  exec::RangedKernel Expect(Context& context, const KernelOp& op);
  /// Runs profiler and releasing kernel of a grid that is about to run as `launch` says, in each form that is wanted:
  /// for the trace if `traced`, and for the timing model if it expects them. Answers why there are none, or none in
  /// some form; else nothing. Thread-safe; the calling thread is in no turn.
  std::string Run(Context& context, const KernelOp& op, const exec::LaunchParams& launch, Origin origin, bool traced);

  /// The timing model has no room for the CTAs of a launch that it was to expect: it runs without ranges there. Says
  /// so, once for a kernel.
  void NoteTooLarge(const KernelOp& op, const std::string& why);
  /// What came of the launches that the timing model was given.
  timing::OverlapOutcome outcome() const;

  DeviceTurns& turns() { return turns_; }

 private:
  /// Less than the watchdog gives a grid that waits for what comes behind it.
  static constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(20);

  /// Forms that are wanted: in the trace, and by the timing model.
  struct Wanted {
    std::vector<trace::LaunchInfo::Ranges> traced;
    std::optional<trace::LaunchInfo::Ranges> timed;
    bool any() const { return !traced.empty() || timed; }
  };
  static Wanted WantedNow(Observers& observers);
  RangeCapture(Observers& observers, Wanted wanted);

  /// A program whose kernels are captured.
  struct ProgramEntry {
    std::unique_ptr<analysis::CallGraph> calls;
    std::map<trace::LaunchInfo::Ranges, std::shared_ptr<exec::RangedProgram>> forms;
    /// Why kernels that have been looked at have no ranges; empty: nothing is in the way.
    std::unordered_map<const ptx::Function*, std::string> why_not;
  };
  std::string WhyNot(const KernelOp& op, Origin origin);
  exec::RangedKernel Find(Context& context, const KernelOp& op, trace::LaunchInfo::Ranges form);
  /// One launch in one form.
  struct FormRun;
  std::string RunForm(const FormRun& run);
  std::string RunBoth(const FormRun& run, const exec::RangedKernel& kernel);
  std::string RunProfiler(const FormRun& run, const exec::RangedKernel& kernel, exec::WrittenMemory& written);
  std::string RunReleasing(const FormRun& run, const exec::RangedKernel& kernel,
                           const std::vector<exec::ByteRange>& ranges);
  bool Note(const KernelOp& op, const std::string& why);

  Observers& observers_;
  const Wanted wanted_;
  std::vector<trace::LaunchInfo::Ranges> forms_;  ///< all of them
  DeviceTurns turns_{kPatience};
  mutable std::mutex mutex_;  // of what follows
  std::map<std::shared_ptr<const exec::Program>, ProgramEntry> programs_;
  timing::OverlapOutcome outcome_;
};

/// A turn on the device beside others, while ranges are captured; else nothing.
class DeviceTurn {
 public:
  /// Null: no ranges are captured.
  explicit DeviceTurn(RangeCapture* capture) : capture_(capture) {
    if (capture_ != nullptr) capture_->turns().Begin();
  }
  ~DeviceTurn() {
    if (capture_ != nullptr) capture_->turns().End();
  }
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

 private:
  RangeCapture* const capture_;
};

}  // namespace gridloom::session
