// A kernel that the thread which would launch it does itself: CTA after CTA, thread after thread.
//
//   before:  .entry k(.param .u64 a, .param .u32 n)
//            { … ld.param.u32 %r1, [n]; … mov.u32 %r2, %tid.x; … ret; }
//   after:   .func gridloom_serial_k(.param .b64 buffer)
//            { load a and n; for each CTA and thread { … mov.u32 %r2, %gl_tid_x; … } ret; }
#pragma once

#include <string>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/cta_waits.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// Why one thread cannot do a kernel, as a clause; empty when it can. Those whose launches can be merged are asked for.
std::string WhyNotSerial(const analysis::CallGraph& calls, const CtaWaits& waits, const ptx::Function& kernel);

/// (buffer): the parameters, behind the shape of the launch (consolidate_functions.h).
std::string SerialFunctionName(const ptx::Function& kernel);
void AddSerialFunction(ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::passes
