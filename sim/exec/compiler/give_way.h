// Races that a GPU's timing hides. Between two barriers the executor runs one warp after the other, so this reads what
// it should not:
//
//   bar.sync 0;  ld.shared total, [sum];  …  st.shared [sum], next      (the second without a barrier before it)
//
// Warp 0 goes on to the store before warp 1 has begun to load. That is a race (PTX ISA, 8: nothing orders the two), but
// on a GPU all warps load within some hundred cycles of the barrier, and sums of blocks that are made so give the right
// results there.
//
// So before a store that may overwrite what every warp reads behind the same barrier, a warp *gives way*: the others of
// its CTA run first, each up to where it waits, gives way itself, or ends. It is no barrier: nobody counts it, warps
// that go elsewhere are not missed, and a warp that has given way goes on when its turn comes, whatever the others do.
#pragma once

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

/// Places the kGiveWay markers that `function` needs. True when there are any.
bool PlaceGiveWays(SpmdModule& spmd, llvm::Function& function, const CompileOptions& options);

}  // namespace gridloom::exec
