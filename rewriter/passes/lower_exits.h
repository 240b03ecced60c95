// Turns `exit` inside of device functions into returns: a thread that ends in a function comes back to its kernel
// first, so that a pass can have something done at the end of every thread.
//
//   before:  .func f(.param .b32 a)               { … @%p exit; … }
//            .entry k()                           { … call f, (a); … }
//   after:   .func f(.param .b32 a, .param .b64 gl_ended) { … @%p bra END; … END: st.local.b32 [gl_ended], 1; ret; }
//            .entry k()  { .local .b32 gl_ended = 0; … call f, (a, &gl_ended); if (gl_ended) exit; … }
#pragma once

#include <set>
#include <string>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"

namespace gridloom::passes {

/// Device functions in which, or in what they call directly, a thread may end by `exit`.
std::set<std::string> FunctionsWithExits(const analysis::CallGraph& calls);

/// Why their exits cannot be lowered; empty when they can: none of them is called through a pointer.
std::string CannotLowerExits(const analysis::CallGraph& calls, const std::set<std::string>& functions);

/// Changes these functions and everything that calls them, in the whole module.
void LowerExits(ptx::Module& module, const std::set<std::string>& functions);

}  // namespace gridloom::passes
