// What a program gives the device, and all that comes with it: the reading before a copy and the writing behind one,
// the profiler before a kernel whose CTAs tell what they touch, and the waits that may be left out. Both who makes a
// traced program's calls again and who follows a program that runs go through here, so that they give the device the
// same.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/timing/live/live_timeline.h"
#include "sim/timing/live/program_storage.h"
#include "sim/trace/trace_file.h"

namespace gridloom::timing {

/// The works of one host. Functions may be called from any thread; those that answer a bool may wait for simulated
/// time, and answer false when they had to give up (LiveAnswers::WaitFor).
class ProgramWorks {
 public:
  /// What a work of the program's (trace::HostAction::work) became, or 0.
  using NodeFunction = std::function<NodeId(std::uint64_t work)>;
  /// `overlapped`: the device follows who uses which memory (sim/hardware/crcs): the program runs as one whose parts
  /// overlap (CRCS paper, section 3).
  ProgramWorks(LiveTimeline& timeline, HostId host, bool overlapped, NodeFunction node_of)
      : timeline_(timeline),
        host_(host),
        overlapped_(overlapped),
        node_of_(std::move(node_of)),
        storage_(timeline, host, overlapped) {}

  /// Before a work that belongs to no group is given: it comes behind what the host has waited for, or would have.
  void PutBehindWaits(Place& place);
  /// Before Add of a copy that belongs to no group; `place` is told its partner.
  bool BeforeCopy(const trace::HostAction& action, Place& place);
  /// Before a group is opened with copies in it of so many bytes: the host cannot wait between them.
  bool BeforeGroup(std::uint64_t to_device, std::uint64_t to_host) { return storage_.BeforeGroup(to_device, to_host); }
  /// A copy, a fill or a marker. The place's partner is that of BeforeCopy.
  NodeId Add(Place place, const trace::HostAction& action);

  /// Before a kernel that is to stand in `kernel`: its profiler, for which that place waits.
  Result<NodeId> AddProfiler(Place& kernel, std::shared_ptr<trace::CtaSource> profiler);
  /// Behind AddProfiler, in the place that it has left: the kernel, with or without release code.
  Result<NodeId> AddKernel(Place place, Tracking tracking, std::shared_ptr<trace::CtaSource> source);

  /// `sees`: the host may look at results when it goes on. Where a program's parts overlap, it does not wait otherwise,
  /// but what comes later comes behind these works, in whatever stream.
  bool Wait(std::span<const NodeId> nodes, bool sees);
  /// The host has asked, and heard that it need not wait.
  bool Looks(bool sees) { return !sees || storage_.AfterWait(); }
  /// Whether the host waits at all where it sees nothing.
  bool overlapped() const { return overlapped_; }
  /// The program has made its last call.
  bool Finish() { return storage_.Finish(); }

 private:
  std::vector<NodeReuse> ReusesOf(const trace::HostAction& action);
  void AddEarlier(const trace::HostAction& action, std::vector<NodeId>& after) const;

  LiveTimeline& timeline_;
  const HostId host_;
  const bool overlapped_;
  const NodeFunction node_of_;
  ProgramStorage storage_;
  std::mutex mutex_;  ///< guards what follows
  /// Works that the host has not waited for although the program does, and how many of all there were each stream comes
  /// behind.
  std::deque<NodeId> passed_;
  std::uint64_t dropped_ = 0;  ///< of those passed, as they had ended
  std::unordered_map<std::uint64_t, std::uint64_t> behind_;
};

}  // namespace gridloom::timing
