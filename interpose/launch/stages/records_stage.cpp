// What a grid's CTAs do goes to the trace file and to the timing model.
#include "interpose/launch/stage.h"
#include "interpose/objects/process.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/launch_capture.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/timeline.h"
#include "interpose/observe/tracing.h"

namespace gridloom::session {
namespace {

void RecordGrid(RunningLaunch& launch, Next next) {
  const KernelOp& op = launch.op;
  TracedLaunch what = KernelOf(op, launch.context.process().observers().range_checks());
  what.no_ranges = std::move(launch.no_ranges);
  RangedLaunch* const ranged = RangedLaunchOf(op);
  const bool timed = ranged == nullptr ||
                     (!launch.context.failed() && ranged->Decide(CodeTableOf(what).code, ShapeOf(op, what), false));
  Tracing* const tracing = launch.traced ? launch.context.process().observers().tracing() : nullptr;
  LaunchCapture capture(op, what, tracing, timed ? op.plan.ctas : nullptr);
  launch.params.records = capture.sink();
  next(launch);
  if (launch.ran && launch.run.fault.kind == exec::FaultKind::kNone) capture.End();
}

}  // namespace

extern constexpr Stage kRecordsStage{
    .wants = [](const Process& process) { return process.observers().timeline() != nullptr; }, .run = &RecordGrid};

}  // namespace gridloom::session
