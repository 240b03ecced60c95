#include "interpose/launch/stages.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "interpose/launch/device_launch.h"
#include "interpose/launch/launches.h"
#include "interpose/objects/device.h"
#include "interpose/objects/launch_request.h"
#include "interpose/objects/process.h"

namespace gridloom::session {

using namespace cuda;

#define GL_STAGE(name) extern const Stage k##name##Stage;
#include "interpose/launch/stages.def"
#undef GL_STAGE

namespace {

/// Behind all stages.
void RunOnEngine(RunningLaunch& launch, Next) {
  launch.run.fault = launch.context.device().engine().Run(launch.params, &launch.run.stats);
}

}  // namespace

/// What the stages that the process has do with its launches.
class LaunchWays {
 public:
  /// Of one kind of launches, what the stages have to do.
  struct Way {
    std::vector<CUresult (*)(PlannedLaunch&)> plan;
    std::vector<void (*)(EnteringLaunch&)> enter;
    std::vector<Next::Run> run;
    std::vector<void (*)(Context&, const KernelOp&)> ended;
  };
  explicit LaunchWays(const Process& process) : of_host(Make(process, false)), by_kernel(Make(process, true)) {}

  const Way of_host, by_kernel;

 private:
  static Way Make(const Process& process, bool by_kernel);
};

LaunchWays::Way LaunchWays::Make(const Process& process, bool by_kernel) {
  static const Stage* const kStages[] = {
#define GL_STAGE(name) &k##name##Stage,
#include "interpose/launch/stages.def"
#undef GL_STAGE
  };
  Way way;
  for (const Stage* const stage : kStages) {
    if ((by_kernel && stage->of == Stage::Of::kHost) || (stage->wants != nullptr && !stage->wants(process))) continue;
    if (stage->plan != nullptr) way.plan.push_back(stage->plan);
    if (stage->enter != nullptr) way.enter.push_back(stage->enter);
    if (stage->run != nullptr) way.run.push_back(stage->run);
    if (stage->ended != nullptr) way.ended.push_back(stage->ended);
  }
  way.run.push_back(&RunOnEngine);
  return way;
}

namespace {

const LaunchWays::Way& WayOf(const Context& context, bool by_kernel) {
  const Process& process = context.process();
  const LaunchWays& ways = *process.launches().ways.Get([&] { return std::make_unique<LaunchWays>(process); });
  return by_kernel ? ways.by_kernel : ways.of_host;
}

void RunThrough(RunningLaunch& launch) {
  // A node of a graph may be older than the limit that its launch is to find.
  launch.params.stack_bytes = std::max(launch.op.stack_bytes, launch.context.stack_limit());
  Next(WayOf(launch.context, launch.by_kernel).run.data())(launch);
}

}  // namespace

CUresult PlanLaunch(PlannedLaunch launch) {
  for (const auto plan : WayOf(launch.context, launch.request.from_device).plan) {
    if (const auto status = plan(launch); status != CUDA_SUCCESS) return status;
  }
  if (launch.request.from_device) return CUDA_SUCCESS;  // compiled when it runs
  const KernelOp& op = launch.op;
  if (launch.compile_whole) {
    const auto status = op.kernel->Prepare(launch.context, op.bound.program, *op.bound.info, op.block);
    if (status != CUDA_SUCCESS) return status;
  }
  if (!launch.compile_sliced) return CUDA_SUCCESS;
  return op.kernel->Prepare(launch.context, op.bound.sliced->program, *op.bound.sliced->info, op.block);
}

void EnterLaunch(EnteringLaunch& launch) {
  for (const auto enter : WayOf(launch.stream.context(), false).enter) {
    if (launch.entered || launch.task != nullptr) return;
    enter(launch);
  }
}

void RunLaunch(Context& context, const KernelOp& op, const WorkOriginPtr& origin) {
  RunningLaunch launch{.context = context, .op = op, .origin = origin, .by_kernel = false, .params = LaunchOf(op)};
  RunThrough(launch);
}

void RunChild(Context& context, const KernelOp& op, DeviceGrid& grid) {
  RunningLaunch launch{
      .context = context, .op = op, .origin = grid.origin(), .by_kernel = true, .params = LaunchOf(op)};
  launch.params.children = &grid;
  RunThrough(launch);
}

void EndLaunch(Context& context, const KernelOp& op, bool by_kernel) {
  for (const auto ended : WayOf(context, by_kernel).ended) ended(context, op);
}

}  // namespace gridloom::session
