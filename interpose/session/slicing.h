// GRIDLOOM_SLICE: every grid runs as a sequence of slices, without the program's knowing (sim/exec/slices/slices.h).
// What cannot be sliced runs whole, and the summary says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interpose/api/cuda_types.h"
#include "rewriter/passes/rewrite_cache.h"
#include "rewriter/support/result.h"

namespace gridloom::session {

struct KernelOp;

/// Most CTAs of a slice, as GRIDLOOM_SLICE says; 0: grids run whole. An error that says what is wrong with the text.
Result<std::uint64_t> ParseSliceSize(const std::optional<std::string>& text);
/// That of this process; 0 when the text is no number (the backend has refused it then).
std::uint64_t SliceSize();

/// Most CTAs of a slice of this launch; 0: it may run whole, though it need not. Kernels that the file has sliced have
/// no whole form.
std::uint64_t SliceSizeOf(const KernelOp& op);

/// Modules that were rewritten in this process.
passes::RewriteCache& TheRewrites();

/// Decides whether a checked launch runs in slices; when not although that was asked for, says why, once per kernel.
/// NOT_SUPPORTED when the file has the kernel sliced and it cannot run so.
cuda::CUresult ChooseSlices(KernelOp& op);

}  // namespace gridloom::session
