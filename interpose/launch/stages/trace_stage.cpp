// GRIDLOOM_TRACE: which launches go to the trace file.
#include "interpose/launch/stage.h"
#include "interpose/objects/process.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/tracing.h"

namespace gridloom::session {
namespace {

void ChooseTraced(RunningLaunch& launch, Next next) {
  if (Tracing* const tracing = launch.context.process().observers().tracing())
    launch.traced = tracing->Wants(launch.op);
  next(launch);
}

}  // namespace

extern constexpr Stage kTraceStage{
    .wants = [](const Process& process) { return process.observers().tracing() != nullptr; }, .run = &ChooseTraced};

}  // namespace gridloom::session
