// GRIDLOOM_SUMMARY: which kernels ran, how often and how long.
#include "interpose/base/summary.h"
#include "interpose/launch/stage.h"
#include "interpose/objects/process.h"

namespace gridloom::session {
namespace {

void AddToSummary(RunningLaunch& launch, Next next) {
  next(launch);
  launch.context.process().summary().Add(launch.op.kernel->name(), launch.run.stats, launch.run.slices);
}

}  // namespace

extern constexpr Stage kSummaryStage{.run = &AddToSummary};

}  // namespace gridloom::session
