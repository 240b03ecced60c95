// .sync instructions whose members may come from different places of the code: "causes executing thread to wait until
// all non-exited threads corresponding to membermask have executed [it] with the same qualifiers and same membermask
// value" (PTX ISA, 9.7.9.6 on shfl.sync; vote, match, redux, elect and bar.warp.sync likewise).
//
// A .sync instruction is lifted as one marker (kSync), so that the optimiser neither merges nor drops what other lanes
// may need of it. LowerSyncs makes that plain: a kWarpSync, and behind it what the active lanes exchange
// (SpmdBuilder::Exchange). Where lanes of the warp that are not there may be alive elsewhere, PlaceMeetings makes it a
// *meeting*:
//
//   … gl.meet(members, inputs…)        lanes wait here for those of `members` that are not here (warp_meeting.cpp)
//   br
//   x = <what the active lanes exchange>
//   y = gl.met(x)                      of lanes that have waited: what their meeting gave them
#pragma once

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

/// Replaces every kSync of the module.
void LowerSyncs(SpmdModule& spmd);

/// Makes meetings of those kWarpSync of `function` that part of the live lanes may reach alone. Its loops are in the
/// form that the vectoriser needs, and stay so.
void PlaceMeetings(SpmdModule& spmd, llvm::Function& function, const CompileOptions& options);

}  // namespace gridloom::exec
