// What cuTensorMapEncodeTiled takes (cuda.h): the opaque map, and the values that are told apart.
#pragma once

#include <cstdint>

#include "interpose/api/cuda_types.h"

namespace gridloom::cuda {

struct alignas(64) CUtensorMap {
  uint64_t opaque[16];
};

inline constexpr CUtensorMapDataType CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B{13},
    CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B{15};
inline constexpr CUtensorMapInterleave CU_TENSOR_MAP_INTERLEAVE_NONE{0}, CU_TENSOR_MAP_INTERLEAVE_32B{2};
inline constexpr CUtensorMapSwizzle CU_TENSOR_MAP_SWIZZLE_NONE{0}, CU_TENSOR_MAP_SWIZZLE_128B{3},
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B{6};
inline constexpr CUtensorMapL2promotion CU_TENSOR_MAP_L2_PROMOTION_L2_256B{3};
inline constexpr CUtensorMapFloatOOBfill CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA{1};

}  // namespace gridloom::cuda
