// Tensor maps for cp.async.bulk.tensor: what the driver API asks of their arguments is checked here, what kernels do to
// them later when they are used (sim/exec/contract/tensor_map.h).
#include "sim/exec/contract/tensor_map.h"

#include <bit>
#include <iterator>

#include "hooks/support.h"
#include "interpose/api/tensor_map_types.h"
#include "interpose/base/log.h"
#include "interpose/base/refusals.h"

namespace gridloom::hooks {

using exec::TensorElement;
using exec::TensorMap;

namespace {

/// By CUtensorMapDataType; what follows is packed.
constexpr TensorElement kElements[] = {
    TensorElement::kU8,     TensorElement::kU16,  TensorElement::kU32,     TensorElement::kS32, TensorElement::kU64,
    TensorElement::kS64,    TensorElement::kF16,  TensorElement::kF32,     TensorElement::kF64, TensorElement::kBF16,
    TensorElement::kF32Ftz, TensorElement::kTF32, TensorElement::kTF32Ftz,
};

CUresult Refuse(const char* what) {
  session::LogFormat(session::LogLevel::kError, "cuTensorMapEncodeTiled: %s are not supported", what);
  session::NoteRefused(session::RefusedKind::kCall, "cuTensorMapEncodeTiled", std::string(what) + " are not supported");
  return CUDA_ERROR_NOT_SUPPORTED;
}

/// Values that the driver knows and this one does not execute.
CUresult RefuseUnsupported(CUtensorMapDataType type, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle) {
  if (type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B && type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B)
    return Refuse("packed elements of 4 and 6 bits");
  if (interleave > CU_TENSOR_MAP_INTERLEAVE_NONE && interleave <= CU_TENSOR_MAP_INTERLEAVE_32B)
    return Refuse("interleaved layouts");
  if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B && swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B)
    return Refuse("swizzles of atoms wider than 16 bytes");
  return CUDA_SUCCESS;
}

CUresult Write(const TensorMap& from, CUtensorMap* to) {
  if (const char* const problem = from.Problem()) {
    GL_LOG(kInfo, "cuTensorMapEncodeTiled: the tensor map %s", problem);
    return CUDA_ERROR_INVALID_VALUE;
  }
  *to = std::bit_cast<CUtensorMap>(from);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(Process& process, CUtensorMap* tensor_map, CUtensorMapDataType type, uint32_t rank,
                                void* address, const uint64_t* sizes, const uint64_t* strides, const uint32_t* box,
                                const uint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill) {
  constexpr uint64_t kMostElements = uint64_t{1} << 32;
  GL_CU_REQUIRE(tensor_map != nullptr && address != nullptr && sizes != nullptr && box != nullptr && steps != nullptr);
  GL_CU_REQUIRE(reinterpret_cast<uint64_t>(tensor_map) % alignof(CUtensorMap) == 0);
  GL_CU_REQUIRE(rank >= 1 && rank <= exec::kMostTensorAxes && (rank == 1 || strides != nullptr));
  GL_CU_REQUIRE(l2_promotion >= 0 && l2_promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  GL_CU_REQUIRE(fill >= 0 && fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  GL_CU_TRY(RefuseUnsupported(type, interleave, swizzle));
  GL_CU_REQUIRE(type >= 0 && static_cast<std::size_t>(type) < std::size(kElements));
  GL_CU_REQUIRE(interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && swizzle >= CU_TENSOR_MAP_SWIZZLE_NONE &&
                swizzle <= CU_TENSOR_MAP_SWIZZLE_128B);
  TensorMap map;
  map.rank = static_cast<std::uint8_t>(rank);
  map.element = kElements[type];
  map.swizzle = static_cast<exec::TensorSwizzle>(swizzle);
  map.fill = static_cast<exec::TensorFill>(fill);
  map.address = reinterpret_cast<uint64_t>(address);
  for (uint32_t axis = 0; axis < rank; ++axis) {
    GL_CU_REQUIRE(sizes[axis] != 0 && sizes[axis] <= kMostElements && steps[axis] != 0 && steps[axis] <= 8);
    map.size[axis] = static_cast<std::uint32_t>(sizes[axis]);  // 2^32 becomes 0, which stands for it
    map.box[axis] = box[axis];
    map.step[axis] = static_cast<std::uint8_t>(steps[axis]);
    if (axis != 0) map.stride[axis - 1] = strides[axis - 1];
  }
  return Write(map, tensor_map);
}

// What lies outside of a tensor is never read here, so its memory need not be there whichever class is asked for: there
// is the small one alone.
CUresult cuTensorMapSetAllocationClass(Process& process, CUtensorMap* tensor_map, CUtensorMapAllocClass alloc_class,
                                       CUtensorMapAllocClass* out_alloc_class) {
  if (out_alloc_class != nullptr) *out_alloc_class = CU_TENSOR_MAP_ALLOC_CLASS_SMALL;
  GL_CU_REQUIRE(tensor_map != nullptr && reinterpret_cast<uint64_t>(tensor_map) % alignof(CUtensorMap) == 0);
  GL_CU_REQUIRE(alloc_class >= CU_TENSOR_MAP_ALLOC_CLASS_AUTO && alloc_class <= CU_TENSOR_MAP_ALLOC_CLASS_LARGE);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(Process& process, CUtensorMap* tensor_map, void* address) {
  GL_CU_REQUIRE(tensor_map != nullptr && address != nullptr);
  auto map = std::bit_cast<TensorMap>(*tensor_map);
  map.address = reinterpret_cast<uint64_t>(address);
  return Write(map, tensor_map);
}

}  // namespace gridloom::hooks
