// The program's timeline (a trace, or simulated time) hears that nothing more comes of a launch.
#include "interpose/launch/stage.h"
#include "interpose/observe/host_timeline.h"

namespace gridloom::session {
namespace {

void CloseWork(const KernelOp& op) {
  if (HostTimeline* const timeline = HostTimeline::Get(); timeline != nullptr && op.plan.work != 0)
    timeline->Close(op.plan.work);
}

}  // namespace

extern constexpr Stage kTimelineStage{.wants = [] { return HostTimeline::Get() != nullptr; }, .ended = &CloseWork};

}  // namespace gridloom::session
