// Rewriting one part of a program that is linked from several (-rdc): what other parts can name stays as it was.
//
//   before:  .visible .func f() { … %ctaid.x … }   .entry k() { call f; }
//   after:   .visible .func f() { … %ctaid.x … }   .func f__of_kernels(…) { … }   .entry k(…) { call f__of_kernels; }
//
// Passes may give functions further parameters or another way to end, which callers in other parts would not know of.
// So kernels call copies of the part's functions, passes see kernels and copies alone, and the functions themselves are
// not touched. What a kernel calls in other parts has no body here; each pass decides what to make of that. Kernels
// that call through pointers are refused: what they reach is not known before the program is linked.
#pragma once

#include "rewriter/passes/pipeline.h"

namespace gridloom::passes {

/// Pipeline::Run for a module whose functions other modules may call and whose pointers may lead to functions of
/// others.
Result<Rewritten> RunOnPart(const Pipeline& pipeline, const ptx::Module& module);

}  // namespace gridloom::passes
