// The code of a kernel as that of a task: thread and block numbers, parameters, shared memory and barriers come from
// the record of the warp that runs it (task_records.h), since the grid it runs in is the MasterKernel's.
//
//   before:  .entry k(.param .u64 p)
//            { .shared .f32 s[32]; … mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; st.shared.f32 [s], %f1; bar.sync 0; …
//              ret; }
//   after:   .func gl_task_k(.param .b32 gl_warp)
//            { … %r1 = first thread of the warp + %laneid, in its row of the block; ld.global.u64 %rd1, [parameters];
//              st.shared.f32 [%gl_shared], %f1; bar.sync %gl_barrier, %gl_threads; … ret; }
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/kernels/task_records.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes::task {

struct Refusal {
  std::string reason;  ///< a clause: "it waits at barrier 3"
  SourceLoc loc;
};

/// What a kernel needs as a task, found in its code and in that of the functions that it calls.
struct Needs {
  Barrier barrier = Barrier::kNone;
  /// Lanes of a warp exchange values, or it reduces at a barrier: blocks must be of whole warps.
  bool full_warps = false;
  /// Lanes exchange values under conditions that are the same for a warp: the rows of blocks must be whole warps.
  bool full_rows = false;
  std::uint32_t static_bytes = 0;  ///< of shared memory; what the launch tells follows, at a multiple of 16
  std::uint32_t alignment = 1;     ///< of its shared memory
};

/// Where the shared variables of a task's functions lie in its memory; those whose size the launch tells are not in it.
using Placement = std::map<const ptx::Variable*, std::uint32_t>;

/// What the kernel needs, or why it cannot be a task.
struct Finding {
  std::optional<Refusal> refusal;
  Needs needs;
};
/// All but its shared memory.
Finding Examine(const analysis::CallGraph& calls, const ptx::Function& kernel);

/// Gives the shared variables that the functions name their places; tells how much that is.
Placement PlaceShared(const std::vector<ptx::Function*>& functions, Needs& needs);

/// Rewrites a copy of the kernel (`is_kernel`) or of a function that it calls, whose parameters end with `gl_warp`.
/// `copies`: the copies of the functions, by original name, which are called in their place.
void RewriteFunction(ptx::Module& module, ptx::Function& function, bool is_kernel, const Needs& needs,
                     const Placement& shared, const std::map<std::string, ptx::Function*, std::less<>>& copies);

inline constexpr const char* kWarpParam = "gl_warp";

}  // namespace gridloom::passes::task
