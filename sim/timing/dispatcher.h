// The front end of a device: streams, hardware queues, copy engines, and the placement of CTAs on SMs as a policy decides. Runs
// between windows, on one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/timing/hooks.h"
#include "sim/timing/parameters.h"
#include "sim/timing/sm/sm.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

/// A CTA that has ended frees its place at once; a CTA in its place starts launch.cta_cycles later, as does every CTA after the
/// decision to start it. That is why decisions can be taken after the window in which their causes happened (Parameters::window).
class Dispatcher {
 public:
  /// `layout`: of the pages of address spaces. `keep_ended`: as EngineOptions::keep_ended.
  Dispatcher(const Parameters& parameters, policy::Policy& policy, const Hooks& hooks, std::uint64_t layout, bool keep_ended);

  Result<WorkId> Add(KernelWork work);
  Result<WorkId> Add(CopyWork work);
  Result<WorkId> Add(MarkerWork work);
  /// Of the works that are kept, in the order in which they were given.
  std::vector<WorkResult> results() const;
  /// Of one that is kept.
  const WorkResult& result(WorkId id) const { return works_.at(id).result; }
  bool done(WorkId id) const;
  std::size_t kept() const { return works_.size(); }

  /// CTAs that ended in the window just simulated.
  void Ended(std::vector<CtaEnd>& ended);

  using StartCta = std::function<void(std::uint32_t sm, CtaStart start)>;
  /// Acts on everything that happens before `end`, in order of time. Fails when a trace cannot be read.
  Status Run(Cycle end, const StartCta& start);

  /// Time of the next known event; kNever when it waits for CTAs or has nothing to do.
  Cycle next() const { return events_.empty() ? kNever : std::get<0>(*events_.begin()); }
  bool all_done() const { return done_ == given_; }
  /// A hook held CTAs back: they are tried again at the next window.
  bool held_back() const { return held_back_; }
  /// Kernels that got their first CTA, and works that ended, since the last call of Run; in the order of time.
  const std::vector<WorkId>& begun() const { return begun_; }
  const std::vector<WorkId>& finished() const { return finished_; }

 private:
  enum class EventKind : std::uint8_t { kCtaEnd, kCopyEnd, kCheck };  // in this order within a cycle
  using Event = std::tuple<Cycle, EventKind, std::uint64_t>;
  enum class State : std::uint8_t { kWaiting, kRunning, kDone };
  struct Work {
    WorkOrder order;
    State state = State::kWaiting;
    WorkKind kind = WorkKind::kKernel;
    bool has_predecessor = false;  ///< in its stream, when it was submitted
    Cycle predecessor_ended = 0;
    std::shared_ptr<trace::CtaSource> source;
    std::unique_ptr<const DecodedCode> code;       // resident warps point to it
    std::unique_ptr<const AddressSpace> memory;    // likewise
    std::shared_ptr<const trace::CtaTrace> valid;  // the last one that was checked
    policy::CtaNeeds needs;
    std::uint64_t profile = 0;
    KernelOwner owner;
    std::vector<std::uint16_t> resident;  ///< CTAs by SM while it runs; KernelView::resident refers to its elements
    WorkResult result;
    std::uint32_t waiters = 0;  ///< works that have not ended and ask for its end
  };

  Result<WorkId> Append(Work work);
  void Handle(const Event& event);
  void OnCtaEnd(const CtaEnd& end);
  void EndKernel(std::vector<policy::KernelView>::iterator kernel, Cycle now);
  void Cut(std::vector<policy::KernelView>::iterator kernel, Cycle now);
  void Finish(WorkId id, Cycle now);
  void Forget();
  bool DependenciesDone(WorkId id) const;
  void Check(Cycle now);
  void CheckCopies(Cycle now);
  void CheckMarkers(Cycle now);
  std::size_t EngineOf(WorkKind kind) const;
  Cycle EarliestStart(const Work& work) const;
  Status Place(Cycle now, const StartCta& start);
  enum class Placed : std::uint8_t { kYes, kNoRoom, kNoMore };
  Result<Placed> PlaceOne(Cycle now, policy::KernelView& kernel, std::uint32_t max_per_sm, const StartCta& start);
  Cycle CopyCycles(const WorkResult& copy) const;

  const Parameters& parameters_;
  policy::Policy& policy_;
  const Hooks& hooks_;
  const std::uint64_t layout_;
  const bool keep_ended_;
  std::unordered_map<WorkId, Work> works_;  // that have not ended, and those that are kept
  std::vector<WorkId> forgettable_;         // some of which may still be asked for
  std::size_t given_ = 0, done_ = 0;
  std::vector<std::deque<WorkId>> queues_;               // kernels that are not ready, by hardware queue
  std::map<std::uint32_t, std::deque<WorkId>> streams_;  // works that have not ended; none is empty
  std::deque<WorkId> copies_;                            // copies that have not started, in the order of submission
  std::deque<WorkId> markers_;                           // that have not ended, likewise
  std::vector<bool> engine_busy_;                        // the last one: what copies and fills on the device
  std::vector<WorkId> begun_, finished_;
  std::set<Event> events_;
  std::vector<CtaEnd> ended_;  // kCtaEnd events refer to them
  std::vector<policy::KernelView> kernels_;
  std::vector<policy::SmView> sms_;
  std::vector<std::vector<std::uint16_t>> free_slots_;  // by SM, the next one last
  std::uint32_t next_sm_ = 0;
  Cycle next_decision_ = 0;
  bool held_back_ = false;
};

}  // namespace gridloom::timing
