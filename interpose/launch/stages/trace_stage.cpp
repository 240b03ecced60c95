// GRIDLOOM_TRACE: which launches go to the trace file.
#include "interpose/launch/stage.h"
#include "interpose/observe/tracing.h"

namespace gridloom::session {
namespace {

void ChooseTraced(RunningLaunch& launch, Next next) {
  if (Tracing* const tracing = Tracing::Get()) launch.traced = tracing->Wants(launch.op);
  next(launch);
}

}  // namespace

extern constexpr Stage kTraceStage{.wants = [] { return Tracing::Get() != nullptr; }, .run = &ChooseTraced};

}  // namespace gridloom::session
