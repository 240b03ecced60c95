// The timing model: SMs, memory partitions and the dispatcher of one device, simulated window by window.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/timing/counters.h"
#include "sim/timing/dispatch/dispatcher.h"
#include "sim/timing/memory/memory_partition.h"
#include "sim/timing/part.h"
#include "sim/timing/phase_threads.h"
#include "sim/timing/recurrence.h"
#include "sim/timing/sm/sm.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

struct EngineOptions {
  unsigned threads = 1;  ///< of the host; results do not depend on it
  bool plain = false;    ///< simulate every component in every cycle, without short cuts: slow, the same results
  /// Simulate each turn of repeats, those that are like the ones before, too: the same results.
  bool each_turn = false;
  /// Cycles that components are simulated alone; 0: as long as the device allows. Results do not depend on it.
  Cycle window = 0;
  std::uint64_t layout = 0;      ///< where the pages of address spaces lie (memory/address_space.h)
  Parts parts = {};              ///< proposed hardware (sim/hardware); the engine keeps them
  Observer* observer = nullptr;  ///< looks on
  ThreadTimes* times = nullptr;  ///< if not null, what the host's threads did is added
  /// Keep what is known of works that have ended, for results(). Without it they are let go once they were reported and
  /// no work that has not ended waits for them; works given later cannot wait for them. What is simulated does not
  /// depend on it.
  bool keep_ended = true;
  /// Told of each work that has ended, in the order of time, and for a kernel what the whole device counted between the
  /// windows in which it began and ended. Called between windows, on the thread that calls Run.
  std::function<void(WorkId id, const WorkResult& work, const Counters& during)> on_finished = {};
};

/// Components are simulated alone for a window of cycles that is no longer than the shortest way of an effect from one
/// to another: the SMs first, then the memory partitions, which stay request_latency cycles ahead. Messages are ordered
/// by time of arrival and source. So the results are those of a cycle-by-cycle simulation, for every window and any
/// number of threads.
///
/// Several threads meet once a window, where the way there and back is at least two windows: partitions are simulated
/// at the same time as SMs, a window behind. What SMs and partitions sent is sealed when the threads meet.
///
/// Where all that runs are turns of repeats, and the device is again in the state in which it was some cycles ago, it
/// is moved on by as many such periods as turns are left for (Recurrence). The results are those of simulating them.
class Engine {
 public:
  /// Fails when the device's latencies contradict each other. The policy must outlive the engine.
  static Result<std::unique_ptr<Engine>> Create(const sim::DeviceSpec& device, policy::Policy& policy,
                                                EngineOptions options = {});
  ~Engine();

  /// Gives the device work. Works are given in the order in which the host submits them.
  Result<WorkId> Add(KernelWork work) { return dispatcher_.Add(std::move(work)); }
  Result<WorkId> Add(CopyWork work) { return dispatcher_.Add(std::move(work)); }
  Result<WorkId> Add(MarkerWork work) { return dispatcher_.Add(std::move(work)); }

  /// Why Add would fail for the code of a kernel. From any thread.
  Status CheckCode(const trace::KernelCode& code) const { return timing::CheckCode(code, parameters_.timing()); }
  /// Nobody wants the work any more: it gets no further CTAs, the warps that run of it end with the instructions that
  /// they are at, a copy that has not started moves nothing.
  void Cancel(WorkId id);

  /// Simulates until all work is done. Fails when a trace cannot be read, or nothing can go on.
  Status Run();
  /// Simulates whole windows that end by `limit`, until `stop` says so after one of them or nothing is left to do
  /// before `limit`. Later calls go on from there; results do not depend on where it stopped.
  Status RunUntil(Cycle limit, const std::function<bool()>& stop);
  bool all_done() const { return dispatcher_.works().all_done(); }

  Cycle now() const { return now_; }  ///< simulated so far, SM cycles
  /// Cycles of now() that were not simulated one by one, as they were like those before (EngineOptions::each_turn).
  Cycle passed() const { return passed_; }
  /// Results of all works in the order in which they were given; without EngineOptions::keep_ended, of those that are
  /// left.
  std::vector<WorkResult> results() const { return dispatcher_.works().results(); }
  const WorkResult& result(WorkId id) const { return dispatcher_.works().at(id).result; }  ///< of one that is kept
  bool done(WorkId id) const { return dispatcher_.works().done(id); }
  std::size_t kept() const { return dispatcher_.works().kept(); }  ///< works
  Counters counters() const;
  /// counters() with the cycles up to now() that the model has not visited because nothing changed in them: what a
  /// cycle-by-cycle simulation would have counted. Memory partitions are request_latency cycles ahead. The same as
  /// counters() after Run.
  Counters counters_now() const;
  const Parameters& parameters() const { return parameters_; }
  const SmCounters& sm_counters(std::size_t sm) const { return sms_[sm]->counters(); }
  const MemoryCounters& partition_counters(std::size_t partition) const { return partitions_[partition]->counters(); }

 private:
  class Input;
  Engine(Parameters parameters, policy::Policy& policy, EngineOptions options);

  Status AttachParts();
  void Build();
  void AddPartCounters(Counters& sum) const;
  void RunSms(unsigned thread, Cycle begin, Cycle end);
  void RunPartitions(unsigned thread, Cycle end);
  void RunWindow(PhaseThreads& threads, Cycle begin);
  void CatchUp(PhaseThreads& threads);
  void SealSms();
  void SealPartitions();
  Status Dispatch(Cycle end);
  Cycle Window() const;
  bool PassesTurns() const;
  bool OnlyTurns();
  void PassTurns(PhaseThreads& threads, Cycle limit);
  void Walk(StateWalk& walk);
  Cycle NextEvent() const;
  Cycle NextOfSources() const;
  Status RunSources(Cycle begin, Cycle end);
  bool HasReports() const;
  void Report();

  const Parameters parameters_;
  const EngineOptions options_;
  const unsigned threads_;
  Ports ports_;
  AddressMap map_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<Sm>> sms_;  // SM i is simulated by thread i % threads_
  std::vector<std::unique_ptr<MemoryPartition>>
      partitions_;  // the other way round, by thread 0 those of the last group
  std::unique_ptr<Input> input_;
  bool overlaps_ = false;  // partitions may stay behind, to be simulated at the same time as SMs
  Cycle now_ = 0;
  Cycle behind_ = 0;  // partitions have still to be simulated until then; 0: they are not behind
  std::map<WorkId, Counters> counters_at_begin_;  // of kernels that run
  Recurrence recurrence_;
  bool has_repeats_ = false;  // a CTA that has some may be on the device
  Cycle passed_ = 0;
};

}  // namespace gridloom::timing
