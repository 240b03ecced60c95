// The MasterKernel (Pagoda, 4.1 to 4.3 and 5): a kernel that stays, whose first warp of each block gives the tasks of
// its column of the TaskTable to the other warps (Algorithm 1), finds free warps for them (Algorithm 2), and gives out
// shared memory (Figures 3 and 4) and barriers. The code is generated for the tasks of a module.
//
// Where it differs from the paper's text, which is for one lane at a time: the rows of a column are looked at by the
// lanes of the warp together, and free warps are given numbers by a vote in place of an atomic counter; blocks of any
// shape get their numbers, not only threads.
//
//   .entry gl_master(.param .u64 table,        // TaskTable: column after column, `rows` entries of `entry_bytes` each
//                    .param .u64 control,      // in device memory: whether to end, and what each warp runs
//                                              // (task_records.h, Control)
//                    .param .u32 rows,         // at most 32
//                    .param .u32 entry_bytes,
//                    .param .u32 pool_bytes)   // of dynamic shared memory: a power of two, 512 to 65,536, or 0
//
//   .global .u32 gl_task_facts[]   // of each task: bytes of static shared memory, how it waits (task_records.h,
//                                  // Barrier), whether it needs whole warps, bytes of parameters
//
// Launched with as many blocks as the table has columns, each of 64 to 1,024 threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewriter/kernels/task_records.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes::task {

inline constexpr const char* kMasterName = "gl_master";
inline constexpr const char* kFactsName = "gl_task_facts";

/// What the MasterKernel and the host must know of a task function.
struct MasterTask {
  std::string function;
  std::uint32_t static_bytes = 0;
  Barrier barrier = Barrier::kNone;
  bool full_warps = false, full_rows = false;
  std::uint32_t param_bytes = 0;
};

/// Adds the MasterKernel to a module that has these task functions; their numbers in TaskTable entries are their places
/// in the list.
void AddMasterKernel(ptx::Module& module, const std::vector<MasterTask>& tasks);

}  // namespace gridloom::passes::task
