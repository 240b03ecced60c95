// memcheck: what the runtime has to hear of barriers and .sync instructions to find wrong ones
// (runtime/memcheck/sync_check.h).
//
//   gl.enter_sync(members)     threads come to it
//   bar.sync, shfl.sync …
//   gl.leave_sync()            they go on
//   …
//   gl.pass_sync()             at its regions: places that all threads come to behind it, and also those that have
//                              passed it by. Who comes there while others of the warp still wait for it will not
//                              come to it any more.
//
// A place at which there is nothing to do but to end is no region: threads may end instead of coming to a barrier.
#pragma once

#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

/// Between SplitAtBarriers and LowerSyncs.
void PlaceSyncChecks(SpmdModule& spmd);

}  // namespace gridloom::exec
