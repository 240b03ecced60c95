// Where the time of a program's works is simulated: in this process, or by the broker together with other programs'.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "interpose/observe/timing_table.h"
#include "rewriter/support/result.h"
#include "sim/trace/kernel_trace.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

/// Takes the CTAs of a launch that is to run with their ranges: those of its profiler first. What follows is told when
/// it is about to run, and gives its CTAs here. When it goes, and nothing was told, nothing follows.
class RangedLaunch : public trace::CtaSink {
 public:
  /// Takes the CTAs of the profiler.
  virtual std::shared_ptr<trace::CtaSink> profiler() = 0;
  /// What runs: if `tracked`, the kernel with release code. False: its CTAs are not wanted, as something else was told
  /// before, or the model cannot run it.
  virtual bool Decide(const trace::KernelCode& code, const trace::LaunchShape& shape, bool tracked) = 0;
};

/// Works are numbered as in their HostAction, from 1 in the order of Add, AddLaunch and AddRanged.
class Timeline {
 public:
  virtual ~Timeline() = default;

  /// Before a copy of a stream: what it does with storage. The host may wait. A number for Add.
  virtual std::uint64_t BeforeCopy(const trace::HostAction&) { return 0; }
  /// Before a graph is launched that copies so many bytes.
  virtual void BeforeGroup(std::uint64_t /*to_device*/, std::uint64_t /*to_host*/) {}
  /// A work that is no launch. `storage`: from BeforeCopy.
  virtual void Add(const trace::HostAction& action, std::uint64_t storage) = 0;
  /// A launch; `opens`: it may launch others. What takes its CTAs; null: it is not simulated. `code` lives as long as
  /// the process.
  virtual std::shared_ptr<trace::CtaSink> AddLaunch(const trace::HostAction& action, const trace::KernelCode& code,
                                                    const trace::LaunchShape& shape, bool opens) = 0;
  /// Fails, with the reason, when an SM of the device can never hold such a CTA.
  virtual Status Fits(const trace::LaunchShape&) const { return {}; }
  /// A launch with the ranges of its CTAs; code and shape are those of its profiler. Null: it cannot be one, and is
  /// still to be added.
  virtual std::shared_ptr<RangedLaunch> AddRanged(const trace::HostAction&, const trace::KernelCode&,
                                                  const trace::LaunchShape&) {
    return nullptr;
  }
  virtual void CloseGroup(std::uint64_t group) = 0;

  /// Parts of the program overlap: its host waits only where it may look at results.
  virtual bool overlapped() const { return false; }
  /// The host waits for the end of works; `sees`: it may look at results then. False when it had to give up.
  virtual bool Wait(std::span<const std::uint64_t> works, bool sees) = 0;
  /// Whether they have ended at the host's time; nothing when that is not known. `sees`: if so, it may look at results.
  virtual std::optional<bool> Ask(std::span<const std::uint64_t> works, bool sees) = 0;
  /// When the work ended, in simulated nanoseconds.
  virtual std::optional<double> EndNs(std::uint64_t work) = 0;
  /// Empty, or why nothing is simulated any more.
  virtual std::string problem() const = 0;
  /// The program ends: simulates what there is.
  virtual TimingTable Finish() = 0;
};

}  // namespace gridloom::session
