// A traced program's calls, made again: its launches, copies, events and waits in their order, at the simulated times
// at which a host with the device in question would make them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/timing/live/live_timeline.h"
#include "sim/timing/live/overlap_outcome.h"
#include "sim/timing/live/program_works.h"
#include "sim/trace/trace_file.h"

namespace gridloom::timing {

/// KernelWork::profile of a launch.
using ProfileFunction = std::function<std::uint64_t(const trace::CtaSource& source)>;

struct PlayOptions {
  ProfileFunction profile_of = {};
  bool overlapped = false;  ///< as ProgramWorks; kernels run as those with release code, behind their profilers
  /// Overlapped: whose profilers and release code.
  trace::LaunchInfo::Ranges ranges = trace::LaunchInfo::Ranges::kInterval;
  /// Overlapped: why an SM of the device can never hold such a CTA. Release code takes registers; a kernel that has
  /// none left for it runs as one of which nothing is known. Empty: it is not asked.
  std::function<Status(const trace::LaunchShape& shape)> fits = {};
  /// Overlapped: told in a sentence which kernel has no room for its release code, and when nothing of a program
  /// overlaps. By several threads. Empty: nobody wants to know.
  std::function<void(const std::string& sentence)> tell = {};
  std::uint64_t most_instructions = 0;  ///< as trace::WithInstructionLimit, of each launch
};

class TracePlayer {
 public:
  TracePlayer(LiveTimeline& timeline, HostId host, std::shared_ptr<trace::TraceFile> file, PlayOptions options = {});
  /// Returns when the program has made its last call; takes the host out of the timeline. What a trace does not have (a
  /// launch that was not kept, or is not complete) takes no time. Fails when a kernel does not fit on the device, or
  /// the simulation does.
  Status Play();

 private:
  Status PlayAll();
  Status PlayAction(const trace::HostAction& action);
  Status PlayWork(const trace::HostAction& action, bool opens);
  Status PlayWait(const trace::HostAction& action);
  Status PlayStorageOf(const trace::HostAction& group);
  Status PlayPlain(Place place, const trace::HostAction& action);
  Status PlayLaunch(Place place, const trace::HostAction& action, std::size_t launch, bool opens);
  /// Whether the launch runs behind its profiler, which is in the trace then. Notes what becomes of it.
  bool IsProfiled(const trace::HostAction& action, const trace::LaunchInfo& launch, bool opens);
  void Tell(const std::string& sentence) const;
  /// `launch`: of the file.
  Result<NodeId> AddLaunch(Place place, std::size_t launch, bool opens);
  std::shared_ptr<trace::CtaSource> SourceOf(std::size_t launch);
  Status GaveUp() const;
  NodeId NodeOf(std::uint64_t work) const;  ///< 0: it did not come to be
  std::vector<NodeId> NodesOf(const std::vector<std::uint64_t>& works) const;

  LiveTimeline& timeline_;
  const HostId host_;
  const std::shared_ptr<trace::TraceFile> file_;
  const std::shared_ptr<trace::TraceBudget> budget_ = std::make_shared<trace::TraceBudget>();
  const PlayOptions options_;
  ProgramWorks works_;
  std::unordered_map<std::uint64_t, std::vector<const trace::HostAction*>> members_;  // by group
  std::unordered_map<std::uint64_t, std::size_t> launches_;                           // complete ones, by work
  struct Tracked {
    std::optional<std::size_t> profiler, releasing;
  };
  std::unordered_map<std::uint64_t, Tracked> tracked_;  // the same with ranges, if they are wanted
  std::vector<bool> played_;                            // by launch
  std::unordered_map<std::uint64_t, NodeId> nodes_;     // by work
  OverlapOutcome outcome_;
};

/// Plays each trace as a host of its own, all of them from the same moment, and simulates to the end.
Status PlayTraces(LiveTimeline& timeline, const std::vector<std::shared_ptr<trace::TraceFile>>& files,
                  const PlayOptions& options = {});

}  // namespace gridloom::timing
