// Narrow tasks (T. T. Yeh, A. Sabne, P. Sakdhnagool, R. Eigenmann, T. G. Rogers, Pagoda: Fine-Grained GPU Resource
// Virtualization for Narrow Tasks, PPoPP 2017): no hardware, but a runtime on the host and a kernel that stays on the
// device, which run kernels of few threads as tasks of theirs. The model runs that kernel instruction by instruction,
// as it stands in rewriter/passes/master_kernel.cpp; its tasks run what the traces of kernels say.
#pragma once

#include "sim/hardware/part_kind.h"

namespace gridloom::hardware {

extern const PartKind kPagoda;

}  // namespace gridloom::hardware
