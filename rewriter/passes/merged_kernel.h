// A kernel that does what many launches of another one did: its CTAs are theirs, one launch after the other.
//
//   before:  .entry k(.param .u64 a, .param .u32 n)
//            { … ld.param.u32 %r1, [n]; … mov.u32 %r2, %ctaid.x; … }
//   after:   .entry k_gl_merged(.param .u64 list, .param .u32 tables)
//            { find the launch that this CTA is of; load its a and n; …
//              mov.u32 %r1, %gl_n; … mov.u32 %r2, %gl_ctaid_x; … }
//
// The launches are in a table, or in several of a list (kernels/launch_records.h). With `tables` 0, `list` is a table.
#pragma once

#include <cstdint>
#include <string>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/cta_waits.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// Why launches of a kernel cannot be merged, as a clause; empty when they can.
std::string WhyNotMerged(const analysis::CallGraph& calls, const ptx::Function& kernel);

/// Bytes of a launch in a table.
std::uint32_t RecordBytes(const ptx::Function& kernel);

/// Adds the kernel's other form, behind it. The module has gridloom_free_tables (kernels/consolidate.cu).
ptx::Function& AddMergedKernel(ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::passes
