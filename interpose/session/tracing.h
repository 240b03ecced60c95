// GRIDLOOM_TRACE: the launches of this process, and the host's part of its time, as a trace file (docs/trace-format.md).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/session/operation.h"
#include "sim/exec/record_sink.h"
#include "sim/trace/capture.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

/// One launch while it is captured.
class LaunchTrace {
 public:
  LaunchTrace(const trace::CodeTable& table, const trace::LaunchShape& shape, std::unique_ptr<trace::LaunchWriter> writer,
              std::uint64_t keep_every);
  exec::RecordSink* sink() { return &capture_; }
  /// The grid has ended well; without this call the launch stays incomplete.
  void End();

 private:
  const std::unique_ptr<trace::LaunchWriter> writer_;
  const std::uint64_t keep_every_;
  std::uint64_t left_out_ = 0;
  trace::Capture capture_;
};

class Tracing {
 public:
  /// Null when nothing is traced: not wanted, the file cannot be written, or this process is a child of the one that writes it.
  static Tracing* Get();

  /// Null when this launch is not to be kept.
  std::unique_ptr<LaunchTrace> Begin(const KernelOp& op);
  /// A copy or fill that is about to run.
  void Note(const CopyOp& op);
  void Note(const FillOp& op);

 private:
  Tracing();
  struct Kernel {
    trace::CodeTable table;
    std::uint32_t number = 0;
    bool wanted = true;
  };
  const Kernel& KernelOf(const KernelOp& op);
  std::uint64_t Now() const;
  void Finish();

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<trace::TraceWriter> writer_;  ///< null: nothing is traced
  std::string path_;
  std::vector<std::string> kernels_wanted_;  ///< parts of names; empty: all
  std::uint64_t first_launch_ = 0, last_launch_ = ~std::uint64_t{0};
  std::uint64_t most_ctas_ = ~std::uint64_t{0};
  int owner_ = 0;

  std::atomic<std::uint64_t> launches_{0}, kept_{0};
  std::mutex mutex_;
  std::unordered_map<const ptx::Function*, std::unique_ptr<Kernel>> kernels_;
  std::vector<std::shared_ptr<exec::Program>> programs_;  ///< whose functions are keys above
};

}  // namespace gridloom::session
