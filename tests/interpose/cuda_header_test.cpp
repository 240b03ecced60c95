// Our declarations of the driver interface against NVIDIA's header: sizes, offsets and values. Compiled only where a
// toolkit is found; everything is checked by the compiler.
// clang-format off
#include "interpose/api/newer_types.h"
#include "interpose/api/tensor_map_types.h"   // first: it must not need NVIDIA's, and some of its names are structs only then

#include <cuda.h>
// clang-format on

#include <catch2/catch.hpp>

namespace ours = gridloom::cuda;

#include "enum_checks.inc"

#define GL_SAME_SIZE(type) static_assert(sizeof(ours::type) == sizeof(::type), #type)
#define GL_SAME_SIZE_AS(type, theirs) static_assert(sizeof(ours::type) == sizeof(::theirs), #type)
#define GL_SAME_FIELD(type, our_field, their_field)                                 \
  static_assert(offsetof(ours::type, our_field) == offsetof(::type, their_field) && \
                    sizeof(ours::type::our_field) == sizeof(::type::their_field),   \
                #type "." #our_field)

GL_SAME_SIZE(CUuuid);
GL_SAME_SIZE(CUipcMemHandle);
GL_SAME_SIZE(CUipcEventHandle);
GL_SAME_SIZE(CUdevprop);
GL_SAME_SIZE(CUexecAffinityParam);
GL_SAME_SIZE(CUctxCreateParams);
GL_SAME_SIZE(CUaccessPolicyWindow);
GL_SAME_SIZE(CUlaunchAttributeValue);
GL_SAME_SIZE(CUlaunchAttribute);
GL_SAME_SIZE(CUlaunchConfig);
GL_SAME_SIZE(CUDA_LAUNCH_PARAMS);
GL_SAME_SIZE(CUDA_MEMCPY2D);
GL_SAME_SIZE(CUDA_MEMCPY3D);
GL_SAME_SIZE(CUDA_MEMCPY3D_PEER);
GL_SAME_SIZE(CUDA_MEMCPY_NODE_PARAMS);
GL_SAME_SIZE(CUmemLocation);
GL_SAME_SIZE(CUmemAllocationProp);
GL_SAME_SIZE(CUmemAccessDesc);
GL_SAME_SIZE(CUmemPoolProps);
GL_SAME_SIZE(CUmemPoolPtrExportData);
GL_SAME_SIZE(CUstreamBatchMemOpParams);
GL_SAME_SIZE(CUtensorMap);
static_assert(alignof(ours::CUtensorMap) <=
              alignof(::CUtensorMap));  // 64 before CUDA 13, and the driver asks for no more
static_assert(static_cast<int>(ours::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B) ==
              static_cast<int>(::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B));
static_assert(static_cast<int>(ours::CU_TENSOR_MAP_SWIZZLE_128B) == static_cast<int>(::CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(static_cast<int>(ours::CU_TENSOR_MAP_INTERLEAVE_32B) == static_cast<int>(::CU_TENSOR_MAP_INTERLEAVE_32B));
GL_SAME_SIZE(CUDA_ARRAY_DESCRIPTOR);
GL_SAME_SIZE(CUDA_ARRAY3D_DESCRIPTOR);
GL_SAME_SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS);
GL_SAME_SIZE(CUDA_RESOURCE_DESC);
GL_SAME_SIZE(CUDA_TEXTURE_DESC);
GL_SAME_SIZE(CUDA_RESOURCE_VIEW_DESC);
GL_SAME_SIZE(CUDA_KERNEL_NODE_PARAMS_v1);
GL_SAME_SIZE(CUDA_KERNEL_NODE_PARAMS_v2);
GL_SAME_SIZE(CUDA_MEMSET_NODE_PARAMS);
GL_SAME_SIZE(CUDA_HOST_NODE_PARAMS);
GL_SAME_SIZE(CUDA_BATCH_MEM_OP_NODE_PARAMS);
GL_SAME_SIZE(CUDA_MEM_ALLOC_NODE_PARAMS);
GL_SAME_SIZE(CUDA_CONDITIONAL_NODE_PARAMS);
GL_SAME_SIZE(CUDA_CHILD_GRAPH_NODE_PARAMS);
GL_SAME_SIZE(CUgraphEdgeData);
GL_SAME_SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS);
GL_SAME_SIZE(CUgraphExecUpdateResultInfo);
GL_SAME_SIZE(CUgraphNodeParams);
#if CUDA_VERSION >= 12040
static_assert(sizeof(ours::CUdevResource) == sizeof(::CUdevResource));
static_assert(offsetof(ours::CUdevResource, sm) == offsetof(::CUdevResource, sm));
static_assert(static_cast<int>(ours::CU_DEV_RESOURCE_TYPE_SM) == static_cast<int>(::CU_DEV_RESOURCE_TYPE_SM));
#endif
#if CUDA_VERSION >= 13010
GL_SAME_SIZE(CU_DEV_SM_RESOURCE_GROUP_PARAMS);
GL_SAME_FIELD(CU_DEV_SM_RESOURCE_GROUP_PARAMS, coscheduled, coscheduledSmCount);
GL_SAME_FIELD(CU_DEV_SM_RESOURCE_GROUP_PARAMS, flags, flags);
#endif
#if CUDA_VERSION >= 12080
GL_SAME_SIZE(CUmemcpyAttributes);
GL_SAME_SIZE(CUmemcpy3DOperand);
GL_SAME_SIZE(CUDA_MEMCPY3D_BATCH_OP);
GL_SAME_FIELD(CUDA_MEMCPY3D_BATCH_OP, width, extent.width);
GL_SAME_FIELD(CUDA_MEMCPY3D_BATCH_OP, src_access_order, srcAccessOrder);
#endif

GL_SAME_FIELD(CUlaunchConfig, stream, hStream);
GL_SAME_FIELD(CUlaunchConfig, attrs, attrs);
GL_SAME_FIELD(CUlaunchConfig, num_attrs, numAttrs);
GL_SAME_FIELD(CUDA_LAUNCH_PARAMS, kernel_params, kernelParams);
GL_SAME_FIELD(CUDA_MEMCPY2D, src_type, srcMemoryType);
GL_SAME_FIELD(CUDA_MEMCPY2D, src_pitch, srcPitch);
GL_SAME_FIELD(CUDA_MEMCPY2D, dst_device, dstDevice);
GL_SAME_FIELD(CUDA_MEMCPY2D, width_bytes, WidthInBytes);
GL_SAME_FIELD(CUDA_MEMCPY3D, src_array, srcArray);
GL_SAME_FIELD(CUDA_MEMCPY3D, src_height, srcHeight);
GL_SAME_FIELD(CUDA_MEMCPY3D, dst_x_bytes, dstXInBytes);
GL_SAME_FIELD(CUDA_MEMCPY3D, dst_height, dstHeight);
GL_SAME_FIELD(CUDA_MEMCPY3D, depth, Depth);
GL_SAME_FIELD(CUmemAllocationProp, alloc_flags, allocFlags);
GL_SAME_FIELD(CUmemPoolProps, max_size, maxSize);
GL_SAME_FIELD(CUstreamBatchMemOpParams, value.address, waitValue.address);
GL_SAME_FIELD(CUstreamBatchMemOpParams, value.value, waitValue.value64);
GL_SAME_FIELD(CUstreamBatchMemOpParams, value.flags, waitValue.flags);
GL_SAME_FIELD(CUDA_RESOURCE_DESC, linear.bytes, res.linear.sizeInBytes);
GL_SAME_FIELD(CUDA_RESOURCE_DESC, pitch2d.pitch_bytes, res.pitch2D.pitchInBytes);
GL_SAME_FIELD(CUDA_RESOURCE_DESC, flags, flags);
GL_SAME_FIELD(CUDA_TEXTURE_DESC, border_color, borderColor);
GL_SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, last_layer, lastLayer);
GL_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS_v2, kernel, kern);
GL_SAME_FIELD(CUDA_MEMSET_NODE_PARAMS, element_size, elementSize);
GL_SAME_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, pointer, dptr);
GL_SAME_FIELD(CUDA_CONDITIONAL_NODE_PARAMS, graphs, phGraph_out);
GL_SAME_FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, result, result_out);
GL_SAME_FIELD(CUgraphExecUpdateResultInfo, error_from_node, errorFromNode);
GL_SAME_FIELD(CUgraphNodeParams, kernel, kernel);
GL_SAME_FIELD(CUgraphNodeParams, memcpy, memcpy);
GL_SAME_FIELD(CUgraphNodeParams, memset, memset);
GL_SAME_FIELD(CUgraphNodeParams, reserved2, reserved2);

TEST_CASE("Declarations_AgreeWithTheToolkit", "[abi]") { CHECK(ours::kDriverVersion >= CUDA_VERSION); }
