// The program's timeline (a trace, or simulated time) hears that nothing more comes of a launch.
#include "interpose/launch/stage.h"
#include "interpose/objects/process.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/observers.h"

namespace gridloom::session {
namespace {

void CloseWork(Context& context, const KernelOp& op) {
  if (HostTimeline* const timeline = context.process().observers().timeline(); timeline != nullptr && op.plan.work != 0)
    timeline->Close(op.plan.work);
}

}  // namespace

extern constexpr Stage kTimelineStage{
    .wants = [](const Process& process) { return process.observers().timeline() != nullptr; }, .ended = &CloseWork};

}  // namespace gridloom::session
