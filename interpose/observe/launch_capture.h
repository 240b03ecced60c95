// What a launch did, on its way to the trace file and to the timing model.
#pragma once

#include <memory>
#include <optional>

#include "interpose/objects/operation.h"
#include "sim/exec/ranges/range_checks.h"
#include "sim/exec/record_sink.h"
#include "sim/trace/capture.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

class RangeChecks;
class RangedLaunch;
class Tracing;

/// What of an operation runs, as traces and the timing model see it: its kernel, or what is made of it.
struct TracedLaunch {
  std::shared_ptr<exec::Program> program;
  const exec::KernelInfo* info = nullptr;
  exec::Dim3 block;
  trace::LaunchInfo::Role role = trace::LaunchInfo::Role::kKernel;
  trace::LaunchInfo::Ranges ranges = trace::LaunchInfo::Ranges::kNone;
  std::string no_ranges = {};
};
/// The kernel; with release code where ranges are checked (`checks`; null: they are not).
TracedLaunch KernelOf(const KernelOp& op, RangeChecks* checks);
/// The profiler of a kernel whose ranges are captured in that form, and the kernel with release code.
TracedLaunch ProfilerOf(const exec::RangedKernel& kernel, trace::LaunchInfo::Ranges form);
TracedLaunch ReleasingOf(const KernelOp& op, const exec::RangedKernel& kernel, trace::LaunchInfo::Ranges form);

/// Where the timing model takes profiler and kernel with release code; null: it does not, or takes the kernel as it is
/// (LaunchPlan::ctas).
RangedLaunch* RangedLaunchOf(const KernelOp& op);

/// The kernel's code as traces have it. It is kept for the life of the process.
const trace::CodeTable& CodeTableOf(const TracedLaunch& launch);
trace::LaunchShape ShapeOf(const KernelOp& op, const TracedLaunch& launch);

/// Whether the kernel's program can launch grids itself.
bool MayLaunch(const KernelOp& op);

/// One launch while it runs.
class LaunchCapture {
 public:
  /// `tracing`: whose file it goes to; null: to none. `live` takes its CTAs to the timing model; null: time is not
  /// simulated.
  LaunchCapture(const KernelOp& op, const TracedLaunch& what, Tracing* tracing, std::shared_ptr<trace::CtaSink> live);
  /// The timing model gets no more CTAs of it.
  ~LaunchCapture();
  LaunchCapture(const LaunchCapture&) = delete;
  LaunchCapture& operator=(const LaunchCapture&) = delete;

  /// Null when nobody wants its records.
  exec::RecordSink* sink() { return capture_ ? &*capture_ : nullptr; }
  /// The grid has ended well; without this call the launch stays incomplete in the trace.
  void End();

 private:
  void Take(std::uint64_t cta, const trace::LoadedCta& trace);

  std::unique_ptr<trace::LaunchWriter> writer_;
  std::uint64_t keep_every_ = 1, left_out_ = 0;
  const std::shared_ptr<trace::CtaSink> live_;
  std::optional<trace::Capture> capture_;
};

}  // namespace gridloom::session
