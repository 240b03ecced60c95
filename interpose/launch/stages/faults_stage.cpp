// A fault of a grid is the context's error from then on, and no further grid runs there.
#include "interpose/base/log.h"
#include "interpose/launch/stage.h"
#include "interpose/objects/errors.h"

namespace gridloom::session {
namespace {

void RunUnlessFailed(RunningLaunch& launch, Next next) {
  if (launch.context.failed()) return;
  launch.ran = true;
  next(launch);
  const exec::LaunchFault& fault = launch.run.fault;
  if (fault.kind == exec::FaultKind::kNone) return;
  if (fault.kind != exec::FaultKind::kStopped) Log(LogLevel::kError, Describe(fault));  // who stopped it has said why
  launch.context.Fail(StatusOf(fault.kind));
}

}  // namespace

extern constexpr Stage kFaultsStage{.run = &RunUnlessFailed};

}  // namespace gridloom::session
