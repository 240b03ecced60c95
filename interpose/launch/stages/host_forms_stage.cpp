// Kernels that the host can stand in for (Kernel::host_form): where nobody wants to see the grid, it may do its work.
#include <chrono>
#include <new>

#include "interpose/base/settings.h"
#include "interpose/launch/stage.h"
#include "interpose/objects/device.h"

namespace gridloom::session {
namespace {

cuda::CUresult PlanHostForm(PlannedLaunch& launch) {
  if (launch.op.kernel->host_form != nullptr)
    launch.compile_whole = launch.compile_sliced = false;  // it may never be compiled
  return cuda::CUDA_SUCCESS;
}

void RunOnHost(RunningLaunch& launch, Next next) {
  const KernelOp& op = launch.op;
  const Kernel::HostForm form = op.kernel->host_form;
  if (form == nullptr) return next(launch);
  const auto begin = std::chrono::steady_clock::now();
  Device& device = launch.context.device();
  try {
    if (!form(launch.params.params, device.memory(), device.engine().threads())) return next(launch);
  } catch (const std::bad_alloc&) {
    launch.run.fault.kind = exec::FaultKind::kOutOfMemory;
    launch.run.fault.kernel = op.kernel->name();
    launch.run.fault.text = "kernel " + op.kernel->name() + ": the host has no memory left";
  }
  launch.run.stats.ctas = op.grid.count();
  launch.run.stats.warps = op.grid.count() * ((op.block.count() + 31) / 32);
  launch.run.stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

extern constexpr Stage kHostFormsStage{
    .wants = [](const Process&) { return settings::Runs(settings::Feature::kHostForms, AskedFeatures()); },
    .plan = &PlanHostForm,
    .run = &RunOnHost};

}  // namespace gridloom::session
