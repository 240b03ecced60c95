// A kernel that does what many launches of another one did: its CTAs are theirs, one launch after the other.
//
//   before:  .entry k(.param .u64 a, .param .u32 n)
//            { … ld.param.u32 %r1, [n]; … mov.u32 %r2, %ctaid.x; … }
//   after:   .entry k_gl_merged(.param .u64 list, .param .u32 tables)
//            { find the launch that this CTA is of; load its a and n; …
//              mov.u32 %r1, %gl_n; … mov.u32 %r2, %gl_ctaid_x; … }
//
// A table of launches (device memory from malloc):
//    0  u64  how many launches << 32 | their CTAs       8  u64  the next table
//   16  u64  threads that have not read their parameters yet; who makes it 0 frees the tables
//   24  u32  shape of the blocks: x | y << 11 | z << 22; their dynamic shared bytes
//   32  u32  of each launch, the CTAs of those before it; then, aligned to 16 bytes, the launches: u32 grid x, y, z, 0;
//            parameters
// A list of tables: 16 as above; 32: of each table, u32 CTAs of those before it, u32 0, u64 the table. With `tables` 0,
// `list` is a table.
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

/// Adds the kernel's other form, behind it.
ptx::Function& AddMergedKernel(ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::passes
