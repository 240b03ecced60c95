// Copies and fills: from the driver interface's descriptions to checked operations.
#pragma once

#include <cstdint>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/operation.h"

namespace gridloom::session {

/// Who the ends of a one-dimensional copy are.
enum class End : std::uint8_t { kHost, kDevice, kAny };

/// INVALID_VALUE when a device end is not device memory from start to end.
cuda::CUresult MakeCopy(Context& context, End dst_end, std::uint64_t dst, End src_end, std::uint64_t src,
                        std::size_t bytes, CopyOp* op);
cuda::CUresult MakeCopy(Context& context, const cuda::CUDA_MEMCPY3D& copy, CopyOp* op);
/// The same copy as a 3D one of depth 1.
cuda::CUDA_MEMCPY3D Widen(const cuda::CUDA_MEMCPY2D& copy);
cuda::CUresult MakeFill(Context& context, const cuda::CUDA_MEMSET_NODE_PARAMS& params, FillOp* op);

/// One end in an array at a byte offset into its rows; the other in linear memory (cuMemcpyHtoA and its like).
cuda::CUresult MakeArrayCopy(Context& context, cuda::CUarray dst_array, std::size_t dst_offset, cuda::CUarray src_array,
                             std::size_t src_offset, End linear_end, std::uint64_t linear, std::size_t bytes,
                             CopyOp* op);

/// Submits a copy that the host does not wait for, with the driver's rules for pageable host memory: a source is taken
/// over before the call returns, a destination is complete when it returns, and so is a copy from host memory to host
/// memory, pinned or not (CUDA driver API, "API synchronization behavior").
cuda::CUresult SubmitCopyAsync(Stream& stream, CopyOp op);

/// INVALID_VALUE unless there are 1 to 256 items, as a driver takes, and every one names an aligned word of device
/// memory.
cuda::CUresult CheckBatch(Context& context, const cuda::CUstreamBatchMemOpParams* items, unsigned count);

/// True when the pointer leads to memory this driver gave out or has registered.
bool IsOurs(Context& context, std::uint64_t pointer);
/// True for host memory that was allocated as pinned or has been registered.
bool IsPinned(Context& context, std::uint64_t pointer);

}  // namespace gridloom::session
