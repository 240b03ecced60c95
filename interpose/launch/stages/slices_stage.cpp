// GRIDLOOM_SLICE, kernels that their file has sliced, and launches that a broker may grant in parts: the grid runs as a
// sequence of slices where it can.
#include "interpose/base/slice_size.h"
#include "interpose/launch/slicing.h"
#include "interpose/launch/stage.h"
#include "interpose/objects/device.h"
#include "interpose/objects/process.h"

namespace gridloom::session {
namespace {

cuda::CUresult PlanSlices(PlannedLaunch& launch) {
  KernelOp& op = launch.op;
  if (SliceSize() != 0 || launch.in_parts) op.kernel->BindSliced(launch.context, &op.bound);
  if (const auto status = ChooseSlices(op, launch.context.process()); status != cuda::CUDA_SUCCESS) return status;
  if (!op.plan.in_slices) return cuda::CUDA_SUCCESS;
  launch.compile_sliced = true;
  launch.compile_whole = launch.in_parts && SliceSizeOf(op) == 0;
  return cuda::CUDA_SUCCESS;
}

void RunSliced(RunningLaunch& launch, Next next) {
  const std::uint64_t size = SliceSizeOf(launch.op);
  if (!launch.op.plan.in_slices || size == 0) return next(launch);
  launch.run = exec::RunInSlices(launch.context.device().engine(), launch.params, *launch.op.bound.sliced, size,
                                 [&launch] { return launch.context.failed(); });
}

}  // namespace

extern constexpr Stage kSlicesStage{.plan = &PlanSlices, .run = &RunSliced};

}  // namespace gridloom::session
