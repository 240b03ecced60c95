// The host's half of a program's time: every operation that takes time or orders others, as a numbered work with what
// it has to wait for, in the order of the program's calls. The trace writes it down, the timing model simulates it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "interpose/objects/operation.h"
#include "interpose/observe/host_reuse.h"
#include "interpose/observe/host_view.h"
#include "sim/timing/live/live_source.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

class LiveTiming;
class Observers;
struct BeforeWork;
struct CopiedBytes;

class HostTimeline {
 public:
  /// Null when neither a trace nor timing is wanted.
  static std::unique_ptr<HostTimeline> Make(Observers& observers);
  ~HostTimeline();
  /// False at exit when all is complete, and in a child of the process whose time it is.
  bool goes_on() const;
  /// Whether times are simulated: then Ask answers, and EndNs knows.
  bool timed() const { return timing_ != nullptr; }

  // ---- works
  /// The operation is put into the stream. Kernels and events are told their numbers.
  void Add(Stream& stream, Operation& operation);
  /// A graph is launched in the stream, or as part of another one. Its works follow, until Close.
  std::uint64_t OpenGroup(Stream& stream, std::uint64_t after, const CopiedBytes& copied);
  std::uint64_t OpenGroup(std::uint64_t group, std::span<const std::uint64_t> after);
  /// The operation is a node of a graph that is being launched, or a kernel that a kernel launches: `group` is the
  /// launch of the graph, or the launching kernel. Answers its number.
  std::uint64_t AddTo(std::uint64_t group, std::span<const std::uint64_t> after, std::uint64_t rank,
                      Operation& operation);
  /// The last of the works of the group has been added.
  void Close(std::uint64_t group);
  static constexpr std::uint64_t kLastRank = ~std::uint64_t{0};
  /// From now on kernels may write memory that the host looks at whenever it likes.
  void ShareMemory();
  /// Pinned or registered memory is no more: what comes to lie there is other memory.
  void Leave(std::uint64_t address, std::uint64_t bytes);

  // ---- the host waits or asks; call after the same was done for the execution
  void Wait(std::uint64_t work);
  void Wait(Stream& stream);
  void WaitAll(Context& context);
  /// Whether the work, or all of the stream, has ended: at the host's simulated time, or, when that is not known,
  /// `executed`.
  bool Ask(std::uint64_t work, bool executed);
  bool Ask(Stream& stream, bool executed);
  /// Whether both works are over for a host that asks when they ended: it sees that then.
  bool AskForTimes(std::uint64_t first, std::uint64_t second, bool executed);
  /// When it ended, in simulated nanoseconds.
  std::optional<double> EndNs(std::uint64_t work) const;

 private:
  explicit HostTimeline(Observers& observers);
  /// Works that later ones have to wait for.
  struct Tails {
    std::uint64_t legacy = 0;
    std::map<std::uint64_t, std::uint64_t> blocking;  ///< by stream, since the last work of the legacy stream
    std::map<std::uint64_t, std::uint64_t> last;      ///< by stream, since the host last waited for all

    /// What the host has waited for is over; what came meanwhile is not.
    void Forget(const Tails& awaited);
  };
  trace::HostAction At(Stream& stream);
  bool Separates(const Stream& stream);
  std::uint64_t Record(trace::HostAction action, Operation* operation, const HostView::Lane& lane,
                       const BeforeWork* before = nullptr);
  void Look(const Operation& operation, const HostView::Lane& lane, std::uint64_t work);
  static HostView::Lane LaneOf(const Stream& stream);
  HostView::Lane LaneOf(std::uint64_t group) const;

  using Seen = std::function<void(HostView& view)>;
  static Seen SeenOf(std::uint64_t work);
  static Seen SeenOf(Stream& stream);
  bool RecordWait(std::span<const std::uint64_t> works, const Seen& seen, bool sees = false);
  std::vector<std::uint64_t> LastOf(Stream& stream);
  bool AskAll(std::span<const std::uint64_t> works, const Seen& seen, bool executed);
  const exec::DeviceMemory& memory() const;
  bool Describe(const Operation& operation, trace::HostAction& action) const;
  void Finish();

  /// What a copy to the device copies.
  struct Source {
    const std::byte* place = nullptr;
    std::uint64_t bytes = 0, hash = 0;
  };
  static std::optional<Source> SourceOf(const Operation& operation, const trace::HostAction& action);
  std::uint64_t FindLike(const std::optional<Source>& source) const;
  void Remember(const std::optional<Source>& source, const trace::HostAction& action);
  void FindReuses(const HostReuse::Memory& memory, trace::HostAction& action) const;

  Observers& observers_;
  std::mutex mutex_;
  /// What the last copy from a place of the host's memory copied, and which one it was.
  std::map<const std::byte*, std::pair<Source, std::uint64_t>> sources_;
  std::unique_ptr<LiveTiming> timing_;
  std::uint64_t works_ = 0;
  std::map<const Context*, Tails> tails_;
  HostView view_;
  HostReuse reuse_;
  std::map<std::uint64_t, HostView::Lane> groups_;  ///< open ones: where the launch of the graph was put
  int owner_ = 0;
  std::atomic<bool> finished_{false};
};

}  // namespace gridloom::session
