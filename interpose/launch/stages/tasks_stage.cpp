// GRIDLOOM_POLICY=pagoda: a launch of few threads runs as a task of the MasterKernel.
#include "interpose/base/settings.h"
#include "interpose/launch/narrow_tasks.h"
#include "interpose/launch/stage.h"
#include "interpose/objects/launch_request.h"

namespace gridloom::session {
namespace {

cuda::CUresult AdmitTask(PlannedLaunch& launch) {
  NarrowTasks* const tasks = launch.context.narrow_tasks();
  if (tasks == nullptr || !launch.request.may_be_task || launch.request.green != nullptr) return cuda::CUDA_SUCCESS;
  launch.op.plan.task = tasks->Admit(launch.op);
  if (launch.op.plan.task != nullptr) launch.compile_whole = launch.compile_sliced = false;
  return cuda::CUDA_SUCCESS;
}

void EnterTasks(EnteringLaunch& launch) {
  if (launch.op.plan.task != nullptr)
    launch.task = launch.stream.context().narrow_tasks()->Make(launch.lane, std::move(launch.op));
}

}  // namespace

extern constexpr Stage kTasksStage{
    .of = Stage::Of::kHost,
    .wants = [](const Process&) { return AskedFeatures().Has(settings::Feature::kTasks); },
    .plan = &AdmitTask,
    .enter = &EnterTasks};

}  // namespace gridloom::session
