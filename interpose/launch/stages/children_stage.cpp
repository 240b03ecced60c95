// Grids that the grid launches: the launch is over when they are.
#include "interpose/launch/device_launch.h"
#include "interpose/launch/stage.h"
#include "interpose/launch/stages.h"

namespace gridloom::session {
namespace {

void RunWithChildren(RunningLaunch& launch, Next next) {
  DeviceGrid grid(launch.context, launch.op, launch.origin);
  launch.params.children = &grid;
  next(launch);
  grid.Finish();
  EndLaunch(launch.context, launch.op, false);
}

}  // namespace

extern constexpr Stage kChildrenStage{.of = Stage::Of::kHost, .run = &RunWithChildren};

}  // namespace gridloom::session
