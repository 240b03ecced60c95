// Giving back what stream-ordered allocation and graphs gave out. A block counts as given back from the call on: a
// second one is refused, although the first may not have run yet.
#pragma once

#include <cstdint>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/operation.h"

namespace gridloom::session {

/// The operation that gives the block back when it runs; CancelFree if it is not submitted after all. NOT_FOUND for
/// memory that no pool and no graph gave out, INVALID_VALUE for a block that is not the program's to free any more.
cuda::CUresult BeginFree(std::uint64_t pointer, FreeOp* op);
void CancelFree(const FreeOp& op);
void RunFree(const FreeOp& op);

}  // namespace gridloom::session
