// Ranges of CTAs, for a trace (GRIDLOOM_RANGES) or for a simulated device that goes by them: profiler and releasing
// kernel run before the grid, alone on the device.
#include <optional>

#include "interpose/launch/stage.h"
#include "interpose/objects/process.h"
#include "interpose/observe/launch_capture.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/range_capture.h"

namespace gridloom::session {
namespace {

void CaptureRanges(RunningLaunch& launch, Next next) {
  using Origin = RangeCapture::Origin;
  const Origin origin = launch.by_kernel ? Origin::kKernel : launch.op.stream != 0 ? Origin::kStream : Origin::kGraph;
  RangeCapture* const capture = launch.context.process().observers().range_capture();
  if ((launch.traced || RangedLaunchOf(launch.op) != nullptr) && !launch.context.failed())
    launch.no_ranges = capture->Run(launch.context, launch.op, launch.params, origin, launch.traced);
  std::optional<DeviceTurn> turn;  // a grid that a kernel launches has that kernel's
  if (!launch.by_kernel) turn.emplace(capture);
  next(launch);
}

}  // namespace

extern constexpr Stage kRangesStage{
    .wants = [](const Process& process) { return process.observers().range_capture() != nullptr; },
    .run = &CaptureRanges};

}  // namespace gridloom::session
