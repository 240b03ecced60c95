// Code that one thread of a CTA runs when all threads of it have ended their work, whichever way they ended. Two ways
// of waiting:
//   barrier  every thread waits at a barrier that the kernel does not use, then thread 0 goes on. Not when a thread
//            may come to the end while others go on to a barrier or a .sync instruction: those would wait for one that
//            waits at the end.
//   counter  a word of shared memory counts the threads that are left; the last one goes on, and nobody waits.
// Threads that end in device functions come back to the kernel first (lower_exits.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// How the threads of a CTA come to its end.
struct EndPlan {
  std::optional<std::uint32_t> barrier;  ///< of its own; else the threads are counted
};

/// `ends_in_functions`: threads come back from functions in which they would have ended.
EndPlan PlanEnd(const analysis::CallGraph& calls, analysis::NodeId kernel, bool ends_in_functions);

/// Whether the kernel's shared memory leaves room for a counter.
bool HasRoomForCount(const ptx::Function& kernel);

/// Every way out of the function becomes a branch to `end`, which is going to follow its last statement.
void RedirectEnds(ptx::Function& kernel, ptx::Label& end);

/// Texts are PTX, which may use the registers %gl_t0, %gl_t1 (32 bits) and %gl_others (a predicate) and has labels of
/// its own. One thread runs `at_entry` before any other does anything, when that is not empty, and one `at_end`.
void RunAtCtaEnd(ptx::Module& module, ptx::Function& kernel, const EndPlan& plan, const std::string& at_entry,
                 const std::string& at_end);

}  // namespace gridloom::passes
