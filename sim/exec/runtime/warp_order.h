// In which order the warps of a CTA go on from a barrier. One runs alone to its next barrier, where a GPU's run side by side, so a
// program that lacks a barrier between "all read the word" and "one thread writes it again" is right on a GPU and would be wrong here if
// the writer went first: docs/design/warp-order.md.
#pragma once

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

/// Some thread reads a word of shared memory whose address is in the code, the same for all threads: warps go on in descending order,
/// that of the first thread, which writes such words as a rule, last.
bool ReadsCommonWord(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::exec
