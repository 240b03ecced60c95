// The front end of a device: kernels, copies and markers become ready in the order of streams (stream_order.h) and
// hardware queues, and a policy decides whose CTAs start next; where they go is cta_placement.h. Runs between windows,
// on one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/timing/device_input.h"
#include "sim/timing/dispatch/copy_engines.h"
#include "sim/timing/dispatch/cta_placement.h"
#include "sim/timing/dispatch/device_launches.h"
#include "sim/timing/dispatch/stream_order.h"
#include "sim/timing/parameters.h"
#include "sim/timing/ports.h"

namespace gridloom::timing {

/// A CTA that has ended frees its place at once; a CTA in its place starts launch.cta_cycles later, as does every CTA
/// after the decision to start it. That is why decisions can be taken after the window in which their causes happened
/// (Parameters::window).
class Dispatcher {
 public:
  /// `layout`: of the pages of address spaces. `keep_ended`: as EngineOptions::keep_ended. `observer` may be null.
  Dispatcher(const Parameters& parameters, policy::Policy& policy, const Ports& ports, Observer* observer,
             std::uint64_t layout, bool keep_ended);

  Result<WorkId> Add(KernelWork work);
  Result<WorkId> Add(CopyWork work);
  Result<WorkId> Add(MarkerWork work);
  /// DeviceInput::Extend, Join, Launch, EndCopy, Recheck.
  Status Extend(WorkId kernel, std::shared_ptr<trace::CtaSource> group);
  Status Join(WorkId kernel, WorkId launch);
  void Launch(WorkId launch, Cycle at);
  void EndCopy(WorkId copy, Cycle at) { events_.insert({at, EventKind::kCopyEnd, copy}); }
  /// Likewise EndKernel, CodeOf, Load.
  void EndKernel(const KernelEnd& end);
  std::shared_ptr<const DecodedCode> CodeOf(WorkId kernel) const { return works_.at(kernel).kernel.code->decoded; }
  Result<trace::LoadedCta> Load(WorkId kernel, std::uint64_t cta) { return Load(works_.at(kernel).kernel, cta); }
  bool IsCancelled(WorkId kernel) const { return works_.Has(kernel) && works_.at(kernel).kernel.cancelled; }
  void Recheck(Cycle at) { events_.insert({at, EventKind::kCheck, 0}); }
  /// Nobody wants the work any more: a kernel gets no further CTAs, a copy that has not started moves nothing.
  void Cancel(WorkId id);

  /// Of the works that are kept, in the order in which they were given.
  std::vector<WorkResult> results() const { return works_.results(); }
  /// Of one that is kept.
  const WorkResult& result(WorkId id) const { return works_.at(id).result; }
  bool done(WorkId id) const { return works_.done(id); }
  std::size_t kept() const { return works_.kept(); }

  /// What CTAs said, and CTAs that ended, in the window just simulated.
  void Signalled(std::vector<CtaSignal>& signals);
  void Ended(std::vector<CtaEnd>& ended);

  using StartCta = std::function<void(std::uint32_t sm, CtaStart start)>;
  /// Acts on everything that happens before `end`, in order of time. Fails when a trace cannot be read.
  Status Run(Cycle end, const StartCta& start);

  /// Time of the next known event; kNever when it waits for CTAs or has nothing to do.
  Cycle next() const { return events_.empty() ? kNever : std::get<0>(*events_.begin()); }
  bool all_done() const { return works_.all_done(); }
  const LaunchCounters& launch_counters() const { return launches_.counters(); }
  /// Kernels that got their first CTA, and works that ended, since the last call of Run; in the order of time.
  const std::vector<WorkId>& begun() const { return begun_; }
  const std::vector<WorkId>& finished() const { return finished_; }

 private:
  enum class EventKind : std::uint8_t {
    kCtaSignal,
    kLaunch,
    kCtaEnd,
    kEngineFree,
    kCopyEnd,
    kKernelEnd,
    kCheck
  };  // in this order within a cycle
  using Event = std::tuple<Cycle, EventKind, std::uint64_t>;
  /// A copy's end: which engine did it, above its number. One that a part does has none.
  static constexpr unsigned kEngineAt = 32;
  using KernelIterator = std::vector<policy::KernelView>::iterator;

  Result<WorkId> Append(WorkState work);
  void Handle(const Event& event);
  void OnSignal(const CtaSignal& signal);
  void OnLaunch(WorkId launch, Cycle now);
  void OnCtaEnd(const CtaEnd& end);
  Status CheckLike(WorkId kernel, const trace::CtaSource& group, const DecodedCode& code) const;
  void Append(WorkId kernel, KernelState::Group group);
  void EndKernel(KernelIterator kernel, Cycle now);
  void Cut(KernelIterator kernel, Cycle now);
  void Finish(WorkId id, Cycle now);
  void End(WorkId id, Cycle now);
  void TellTransfer(WorkId id, Cycle now) const;
  void Check(Cycle now);
  void CheckKernels(Cycle now);
  void CheckQueue(std::uint32_t queue, Cycle now);
  std::uint32_t QueueOf(const WorkState& kernel) const {
    return kernel.order.stream % parameters_.timing().launch.queues;
  }
  void CheckLaunches(Cycle now);
  void CheckTaken(Cycle now);
  void LaunchPastQueues(WorkId id);
  void CheckCopies(Cycle now);
  bool StartCopy(WorkId id, Cycle now);
  bool Elsewhere(const WorkState& copy, const WorkState& before) const;
  bool HandsOver(const WorkState& copy) const;
  void CheckMarkers(Cycle now);
  void AwaitStart(WorkId id);
  void PutIntoQueue(WorkId id);
  /// Each tenant has as many places for kernels that are ready as on a device of its own.
  bool HasRoomForKernelOf(std::uint32_t tenant) const;
  std::optional<std::uint32_t> TakeQueue(std::uint32_t from);
  bool Park(WorkId id);
  void Unpark(WorkId blocker, Cycle now);
  Result<std::shared_ptr<const CodeOfWorks>> DecodedOf(const trace::KernelCode& code);
  /// From when on nothing holds the work back: if that is known and later than `now`, it is looked at again then.
  /// kNever: something has to end first. `launched`: it is launched as kernels are.
  Cycle BeginOf(WorkId id, Cycle now, bool launched);
  bool MayBegin(WorkId id, Cycle now, bool launched) { return BeginOf(id, now, launched) <= now; }
  void MakeReady(WorkId id, Cycle now);
  Status Place(Cycle now, const StartCta& start);
  std::optional<policy::Slice> NextSlice(Cycle now);
  void ShowPages(policy::KernelView& kernel) const;
  void NoteStart(WorkId id, Cycle at);
  enum class Placed : std::uint8_t { kYes, kNoRoom, kLimited, kNoMore };
  Result<Placed> PlaceOne(Cycle now, policy::KernelView& kernel, const policy::Slice& slice, const StartCta& start);
  Result<trace::LoadedCta> Load(KernelState& kernel, std::uint64_t cta);

  const Parameters& parameters_;
  policy::Policy& policy_;
  const Ports& ports_;
  Observer* const observer_;
  const std::uint64_t layout_;
  StreamOrder works_;
  CopyEngines engines_;
  CtaPlacement placement_;
  // What waits for a known time or for a work's end is not looked at before: otherwise each event would cost a look at
  // all that waits, and a program with many streams would take the time of all others.
  using ByTime = std::set<std::pair<Cycle, WorkId>>;
  std::unordered_map<std::uint32_t, std::deque<WorkId>> queues_;  // kernels that are not ready, by hardware queue
  std::set<std::uint32_t> open_queues_;                           // whose first kernel may have become ready
  // By tenant: queues whose first kernel is the tenant's, which has no room for one more.
  std::map<std::uint32_t, std::set<std::uint32_t>> full_queues_;
  std::set<std::pair<Cycle, std::uint32_t>> waking_queues_;  // whose first kernel is ready at that time
  DeviceLaunches launches_;
  std::unordered_map<WorkId, CtaSignal> calls_;  // that last, by what they launch
  // By kernels, at the kernel management unit, by tenant, then by the time at which they may go on.
  std::map<std::uint32_t, ByTime> launched_;
  Cycle next_dispatch_ = 0;  // when the next of them may leave it
  // Copies that have not started, by engine, but for those that are parked: an engine takes them in the order in which
  // hosts gave them.
  std::vector<ByTime> copies_;
  ByTime markers_;  // that have not ended, likewise
  ByTime taken_;    // kernels that go by a KernelPath and have not begun, likewise
  // Works that cannot begin before a work has ended, by that work.
  std::unordered_map<WorkId, std::vector<WorkId>> parked_;
  // Of kernels that have not ended. A work keeps its source, and that its code, so nothing else can lie at the address
  // of one as long as works hold the entry. What parts keep of a work says nothing about its source.
  std::unordered_map<const trace::KernelCode*, std::weak_ptr<const CodeOfWorks>> decoded_;
  std::size_t most_decoded_ = 64;  // more are looked through for those that are gone
  std::set<WorkId> done_early_;    // have done all they had to before all that comes before them has ended
  std::vector<WorkId> begun_, finished_;
  std::set<Event> events_;
  std::vector<CtaSignal> signals_;                           // kCtaSignal events refer to them
  std::vector<CtaEnd> ended_;                                // kCtaEnd events likewise
  std::unordered_map<std::uint32_t, std::size_t> ready_of_;  ///< kernels of each tenant in kernels_
  std::vector<policy::KernelView> kernels_;
  std::vector<std::uint64_t> limited_;         // kernels that limits hold back everywhere, in this decision
  std::vector<policy::KernelView> unlimited_;  // the others
};

}  // namespace gridloom::timing
