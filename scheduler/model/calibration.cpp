#include "scheduler/model/calibration.h"

#include <algorithm>

#include "scheduler/model/sm_chain.h"

namespace gridloom::model {
namespace {

double IpcWithLatency(const SmModel& sm, KernelProfile& profile, double latency) {
  profile.refinement.latency_cycles = latency;
  return PredictIpc(sm, {&profile, 1});
}

}  // namespace

void FitToLoneBlock(const SmModel& sm, double ipc, KernelProfile& profile) {
  if (!(ipc > 0)) return;
  KernelProfile::Refinement& refinement = profile.refinement;
  if (profile.memory_ratio <= 0) {
    refinement.dependency_cycles = std::max(1.0, profile.needs.warps * refinement.instructions_per_issue / ipc);
    return;
  }
  // The chain's IPC falls as the latency rises.
  constexpr double kMost = 1e7;
  constexpr int kSteps = 50;
  const double before = refinement.latency_cycles;
  double least = 1, most = kMost;
  if (IpcWithLatency(sm, profile, least) <= ipc || IpcWithLatency(sm, profile, most) >= ipc) {
    refinement.latency_cycles = before;
    return;
  }
  for (int step = 0; step < kSteps; ++step) {
    const double middle = (least + most) / 2;
    if (IpcWithLatency(sm, profile, middle) > ipc) least = middle;
    else most = middle;
  }
  refinement.latency_cycles = most;
}

}  // namespace gridloom::model
