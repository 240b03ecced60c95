// The host's half of a program's time: every operation that takes time or orders others, as a numbered work with what it has to wait
// for, in the order of the program's calls. The trace writes it down, the timing model simulates it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "interpose/session/operation.h"
#include "sim/timing/live/live_source.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

class LiveTiming;

class HostTimeline {
 public:
  /// Null when neither a trace nor timing is wanted, and at exit when both are complete.
  static HostTimeline* Get();
  /// Whether times are simulated: then Ask answers, and EndNs knows.
  bool timed() const { return timing_ != nullptr; }

  // ---- works ------------------------------------------------------------------------------------------------------------
  /// The operation is put into the stream. Kernels and events are told their numbers.
  void Add(Stream& stream, Operation& operation);
  /// A graph is launched in the stream, or as part of another one. Its works follow, until Close.
  std::uint64_t OpenGroup(Stream& stream, std::uint64_t after);
  std::uint64_t OpenGroup(std::uint64_t group, std::span<const std::uint64_t> after);
  /// The operation is a node of a graph that is being launched, or a kernel that a kernel launches: `group` is the launch of the
  /// graph, or the launching kernel. Answers its number.
  std::uint64_t AddTo(std::uint64_t group, std::span<const std::uint64_t> after, std::uint64_t rank, Operation& operation);
  /// The last of the works of the group has been added.
  void Close(std::uint64_t group);
  static constexpr std::uint64_t kLastRank = ~std::uint64_t{0};

  // ---- the host waits or asks; call after the same was done for the execution -----------------------------------------------
  void Wait(std::uint64_t work);
  void Wait(Stream& stream);
  void WaitAll(Context& context);
  /// Whether the work, or all of the stream, has ended: at the host's simulated time, or, when that is not known, `executed`.
  bool Ask(std::uint64_t work, bool executed);
  bool Ask(Stream& stream, bool executed);
  /// When it ended, in simulated nanoseconds.
  std::optional<double> EndNs(std::uint64_t work) const;

 private:
  HostTimeline();
  /// Works that later ones have to wait for.
  struct Tails {
    std::uint64_t legacy = 0;
    std::map<std::uint64_t, std::uint64_t> blocking;  ///< by stream, since the last work of the legacy stream
    std::map<std::uint64_t, std::uint64_t> last;      ///< by stream, since the host last waited for all
  };
  trace::HostAction At(Stream& stream);
  std::uint64_t Record(trace::HostAction action, Operation* operation);
  void RecordWait(std::span<const std::uint64_t> works);
  std::vector<std::uint64_t> LastOf(Stream& stream);
  bool AskAll(std::span<const std::uint64_t> works, bool executed);
  static bool Describe(const Operation& operation, trace::HostAction& action);
  void Finish();

  std::mutex mutex_;
  std::unique_ptr<LiveTiming> timing_;
  std::uint64_t works_ = 0;
  std::map<const Context*, Tails> tails_;
  int owner_ = 0;
  std::atomic<bool> finished_{false};
};

}  // namespace gridloom::session
