// Fits a profile to what one thread block does alone on an SM.
#pragma once

#include "scheduler/model/kernel_profile.h"

namespace gridloom::model {

/// Sets refinement.latency_cycles such that the Markov chain gives one thread block alone on an SM the IPC that it was
/// measured to have. There nothing contends, so what the chain does not know of (barriers, warps of unequal length, the
/// beginning and end of short blocks, waits for shared memory) is latency; how the kernel scales from there to a full
/// SM is the chain's to say. A kernel without memory accesses gets its dependency_cycles instead. Leaves the profile as
/// it is where no latency gives that IPC, or `ipc` is not above 0.
void FitToLoneBlock(const SmModel& sm, double ipc, KernelProfile& profile);

}  // namespace gridloom::model
