// The front end of a device: kernels, copies and markers become ready in the order of streams (stream_order.h), a
// policy decides whose CTAs start next. What has a duty of its own is a class of its own; the dispatcher joins them in
// the order of time. Runs between windows, on one thread.
#pragma once

#include <cstdint>
#include <set>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/timing/device_input.h"
#include "sim/timing/dispatch/code_table.h"
#include "sim/timing/dispatch/cta_groups.h"
#include "sim/timing/dispatch/cta_placement.h"
#include "sim/timing/dispatch/cta_starts.h"
#include "sim/timing/dispatch/device_launches.h"
#include "sim/timing/dispatch/dispatch_events.h"
#include "sim/timing/dispatch/hardware_queues.h"
#include "sim/timing/dispatch/management_unit.h"
#include "sim/timing/dispatch/parking_lot.h"
#include "sim/timing/dispatch/path_kernels.h"
#include "sim/timing/dispatch/ready_kernels.h"
#include "sim/timing/dispatch/stream_order.h"
#include "sim/timing/dispatch/waiting_copies.h"
#include "sim/timing/dispatch/work_reports.h"
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
  /// DeviceInput::EndKernel.
  void EndKernel(const KernelEnd& end);
  /// Nobody wants the work any more: a kernel gets no further CTAs, a copy that has not started moves nothing.
  void Cancel(WorkId id);

  /// Acts on everything that happens before `end`, in order of time. Fails when a trace cannot be read.
  Status Run(Cycle end, const StartCta& start);

  // ---- what others than the dispatcher may do with what it joins
  const StreamOrder& works() const { return works_; }
  StreamOrder& works() { return works_; }
  std::vector<CopiedMemory> TakeCopied() { return copies_.TakeCopied(); }
  DispatchEvents& events() { return events_; }
  const DispatchEvents& events() const { return events_; }
  CtaGroups& groups() { return groups_; }
  ManagementUnit& management_unit() { return management_unit_; }
  /// Since the last call of Run.
  const WorkReports& reports() const { return reports_; }
  const LaunchCounters& launch_counters() const { return launches_.counters(); }

 private:
  using Event = DispatchEvents::Event;

  Result<WorkId> Append(WorkState work);
  void PutInLine(WorkId id);
  void Handle(const Event& event);
  void OnSignal(const CtaSignal& signal);
  void OnLaunch(WorkId launch, Cycle now);
  void OnCtaEnd(const CtaEnd& end);
  void EndKernel(ReadyKernels::Iterator kernel, Cycle now);
  void Finish(WorkId id, Cycle now);
  void End(WorkId id, Cycle now);
  void Unpark(WorkId blocker, Cycle now);
  void CheckMarkers(Cycle now);
  Status Place(Cycle now, const StartCta& start);
  void Cut(ReadyKernels::Iterator kernel, Cycle now);

  const Parameters& parameters_;
  const Ports& ports_;
  Observer* const observer_;
  const std::uint64_t layout_;
  CodeTable codes_;
  StreamOrder works_;
  DispatchEvents events_;
  ParkingLot lot_;
  DeviceLaunches launches_;
  WorkReports reports_;
  CtaPlacement placement_;
  ReadyKernels ready_;
  CtaGroups groups_;
  CtaStarts starts_;
  HardwareQueues queues_;
  ManagementUnit management_unit_;
  PathKernels path_kernels_;
  WaitingCopies copies_;
  WorksByTime markers_;          // that have not ended, but for those that are parked
  std::set<WorkId> done_early_;  // have done all they had to before all that comes before them has ended
};

}  // namespace gridloom::timing
