#pragma once

#include <cstdint>

#include "interpose/api/cuda_types.h"

namespace gridloom::hooks {

/// The kinds of handles as which the memory that is mapped at an address may be exported; none for other memory: pools give out no
/// handles here, and cuMemAlloc's memory has none.
std::uint64_t HandleTypesOf(cuda::CUdeviceptr pointer);

}  // namespace gridloom::hooks
