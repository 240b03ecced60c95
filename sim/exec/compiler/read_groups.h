// Reads of shared memory under memcheck, a stretch of code at a time. Unrolled loops read many places between two
// barriers, and asking the runtime about each takes several times as long as the read. Where nothing between them can
// change what memcheck knows of shared memory, one question is enough (Helper::kCheckReads): whether all that they may
// touch was written before the last barrier. If so, they run without checks, and no value that they read has invalid
// bits; if not, each is looked at by itself.
//
//   before:  %a = load(%p)  %b = load(%p + 4)  %c = load(%q) …
//   after:   %ok = check_reads(%p, %p + 4, %q …)   br %ok, reads, checked
//            reads:   the same with loads that ask nobody    br rest
//            checked: as before                              br rest
#pragma once

#include <llvm/IR/Function.h>

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/shape.h"
#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

/// Sets the pattern of rows, as long as can be, when lanes with these offsets stand in rows of accesses of `imm.bytes`.
bool StandInRows(const LanePattern& pattern, SharedAccessImm& imm);

/// The function is in LoopSimplify and LCSSA form, and stays so.
void PlaceReadGroups(SpmdModule& spmd, llvm::Function& function, const CompileOptions& options);

}  // namespace gridloom::exec
