// The way of every launch through the stages (stages.def).
#pragma once

#include "interpose/launch/stage.h"

namespace gridloom::session {

class DeviceGrid;

/// A launch that is made, up to its compiled code.
cuda::CUresult PlanLaunch(PlannedLaunch launch);
/// A launch of the host's that is put into a stream: launch.entered, launch.task, or neither, and it is to be run by
/// RunLaunch.
void EnterLaunch(EnteringLaunch& launch);
/// Runs a launch of the host's, and all that it launches, on the calling thread. `origin`: null where nobody asks.
void RunLaunch(Context& context, const KernelOp& op, const WorkOriginPtr& origin);
/// Runs a launch by a kernel; `grid`: for what it launches itself.
void RunChild(Context& context, const KernelOp& op, DeviceGrid& grid);
/// The launch's grid has run, and so has all that it launched.
void EndLaunch(Context& context, const KernelOp& op, bool by_kernel);

}  // namespace gridloom::session
