// What a launch did, on its way to the trace file and to the timing model.
#pragma once

#include <memory>
#include <optional>

#include "interpose/session/operation.h"
#include "sim/exec/record_sink.h"
#include "sim/trace/capture.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

/// The code of the operation's kernel as traces have it. Kept for the life of the process.
const trace::CodeTable& CodeTableOf(const KernelOp& op);

trace::LaunchShape ShapeOf(const KernelOp& op);

/// Whether the kernel's program can launch grids itself.
bool MayLaunch(const KernelOp& op);

/// One launch while it runs.
class LaunchCapture {
 public:
  explicit LaunchCapture(const KernelOp& op);
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
