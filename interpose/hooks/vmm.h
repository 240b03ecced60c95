#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "interpose/api/cuda_types.h"

namespace gridloom::hooks {

/// Memory of cuMemCreate, mapped into a reserved range.
struct MappedMemory {
  cuda::CUdeviceptr base = 0;
  std::size_t bytes = 0;
  std::uint64_t id = 0;        ///< of the mapping
  std::uint64_t block_id = 0;  ///< of the memory, the same wherever it is mapped
  bool at_host = false;
  /// The handle types as which the memory may be exported.
  cuda::CUmemAllocationHandleType handle_types = cuda::CU_MEM_HANDLE_TYPE_NONE;
};

/// What is mapped at the address; nothing for other memory and where a reserved range is empty.
std::optional<MappedMemory> MappedAt(cuda::CUdeviceptr pointer);

}  // namespace gridloom::hooks
