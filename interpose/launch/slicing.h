// GRIDLOOM_SLICE: every grid runs as a sequence of slices, without the program's knowing (sim/exec/slices/slices.h).
// What cannot be sliced runs whole, and the summary says why.
#pragma once

#include <cstdint>

#include "interpose/api/cuda_types.h"

namespace gridloom::session {

struct KernelOp;
class Process;

/// Most CTAs of a slice of this launch; 0: it may run whole, though it need not. Kernels that the file has sliced have
/// no whole form.
std::uint64_t SliceSizeOf(const KernelOp& op);

/// Decides whether a checked launch runs in slices; when not although that was asked for, says why, once per kernel,
/// and to the summary, too. NOT_SUPPORTED when the file has the kernel sliced and it cannot run so.
cuda::CUresult ChooseSlices(KernelOp& op, Process& process);

}  // namespace gridloom::session
