// GRIDLOOM_CHECK_RANGES: the grid runs with release code, and its ranges are compared with what it touches.
#include "interpose/launch/stage.h"
#include "interpose/objects/device.h"
#include "interpose/objects/process.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/range_checking.h"

namespace gridloom::session {
namespace {

/// What is recorded of the grid is asked for by kernels that were looked for before.
cuda::CUresult LookForRanges(PlannedLaunch& launch) {
  const Kernel::Bound& bound = launch.op.bound;
  static_cast<void>(launch.context.process().observers().range_checks()->Find(
      launch.context.device().memory(), bound.program, std::string(bound.info->name)));
  return cuda::CUDA_SUCCESS;
}

void CheckRangesOfGrid(RunningLaunch& launch, Next) {
  Device& device = launch.context.device();
  launch.run.fault = launch.context.process().observers().range_checks()->Run(device.engine(), device.memory(),
                                                                              launch.params, launch.run.stats);
}

}  // namespace

extern constexpr Stage kRangeChecksStage{
    .wants = [](const Process& process) { return process.observers().range_checks() != nullptr; },
    .plan = &LookForRanges,
    .run = &CheckRangesOfGrid};

}  // namespace gridloom::session
