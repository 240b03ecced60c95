// GRIDLOOM_TRACE: the launches of this process, and the host's part of its time, as a trace file
// (docs/trace-format.md).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/objects/operation.h"
#include "rewriter/support/quantity.h"
#include "sim/trace/code_table.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

struct TracedLaunch;

class Tracing {
 public:
  /// Null when nothing is to be traced, or the file cannot be written, which is said.
  static std::unique_ptr<Tracing> Make();
  /// False in a child of the process that writes the file.
  bool of_this_process() const;

  /// Whether a launch that is about to run is to be kept. To be asked once for each.
  bool Wants(const KernelOp& op);
  /// What runs of a launch that is to be kept. Of its CTAs, every `keep_every`th is.
  std::unique_ptr<trace::LaunchWriter> Begin(const KernelOp& op, const TracedLaunch& what, std::uint64_t* keep_every);
  /// The next call of the host; adds the time.
  void Add(trace::HostAction action);

 private:
  Tracing();
  struct Kernel {
    const trace::CodeTable* table = nullptr;
    std::uint32_t number = 0;
  };
  const Kernel& KernelOf(const TracedLaunch& what);
  std::uint64_t Now() const;
  void Finish();

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<trace::TraceWriter> writer_;  ///< null: nothing is traced
  std::string path_;
  std::vector<std::string> kernels_wanted_;  ///< parts of names; empty: all
  NumberRange wanted_launches_;
  std::uint64_t most_ctas_ = ~std::uint64_t{0};
  int owner_ = 0;

  std::atomic<std::uint64_t> launches_{0}, kept_{0};
  std::mutex mutex_;
  std::unordered_map<const ptx::Function*, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace gridloom::session
