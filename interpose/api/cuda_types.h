// The driver interface's handles and structs, as much of them as the shim touches: layouts are ABI facts, compared with
// cuda.h in tests/interpose/cuda_header_test.cpp where a toolkit is present. Structs that only refused functions take
// stay incomplete; those of 13.1 and later are in newer_types.h. Types keep the names CUDA programs know them by;
// fields are in our own style.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/api/cuda_enums.h"

namespace gridloom::cuda {

inline constexpr int kDriverVersion = 13000;

using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUdeviceptr_v1 = std::uint32_t;
using CUtexObject = std::uint64_t;
using CUsurfObject = std::uint64_t;
using CUmemGenericAllocationHandle = std::uint64_t;
using CUgraphConditionalHandle = std::uint64_t;
using CUstreamAttrID = CUlaunchAttributeID;
using CUkernelNodeAttrID = CUlaunchAttributeID;
using CUlogIterator = unsigned;

using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUarray = struct CUarray_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUtexref = struct CUtexref_st*;
using CUsurfref = struct CUsurfref_st*;
using CUevent = struct CUevent_st*;
using CUstream = struct CUstream_st*;
using CUgraphicsResource = struct CUgraphicsResource_st*;
using CUexternalMemory = struct CUextMemory_st*;
using CUexternalSemaphore = struct CUextSemaphore_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphDeviceNode = struct CUgraphDeviceUpdatableNode_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUuserObject = struct CUuserObject_st*;
using CUlinkState = struct CUlinkState_st*;
using CUasyncCallbackHandle = struct CUasyncCallbackEntry_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUdevResourceDesc = struct CUdevResourceDesc_st*;
using CUlogsCallbackHandle = struct CUlogsCallbackEntry_st*;

using CUhostFn = void (*)(void* user_data);
using CUstreamCallback = void (*)(CUstream stream, CUresult status, void* user_data);
using CUoccupancyB2DSize = std::size_t (*)(int block_size);
using CUasyncCallback = void (*)(struct CUasyncNotificationInfo* info, void* user_data, CUasyncCallbackHandle callback);
using CUlogsCallback = void (*)(void* data, int level, char* message, std::size_t length);

/// Stream handles with a meaning of their own; null is the legacy stream, or the thread's own one through a twin.
inline constexpr std::uintptr_t kStreamLegacy = 1;
inline constexpr std::uintptr_t kStreamPerThread = 2;
inline constexpr CUdevice kDeviceCpu = -1;
inline constexpr CUdevice kDeviceInvalid = -2;

/// Keys of the `extra` list of a launch.
inline constexpr std::uintptr_t kLaunchParamEnd = 0;
inline constexpr std::uintptr_t kLaunchParamBufferPointer = 1;
inline constexpr std::uintptr_t kLaunchParamBufferSize = 2;

inline constexpr unsigned kMemHostAllocPortable = 1, kMemHostAllocDeviceMap = 2, kMemHostAllocWriteCombined = 4;
inline constexpr unsigned kMemHostRegisterPortable = 1, kMemHostRegisterDeviceMap = 2, kMemHostRegisterIoMemory = 4,
                          kMemHostRegisterReadOnly = 8;
inline constexpr unsigned kArray3DLayered = 0x01, kArray3DSurfaceLdst = 0x02, kArray3DCubemap = 0x04,
                          kArray3DTextureGather = 0x08, kArray3DSparse = 0x40, kArray3DDeferredMapping = 0x80;
inline constexpr unsigned kGraphConditionalAssignDefault = 1;
inline constexpr unsigned kTexRefOverrideFormat = 1;
inline constexpr unsigned kTexReadAsInteger = 0x01, kTexNormalizedCoordinates = 0x02, kTexSrgb = 0x10,
                          kTexDisableTrilinearOptimization = 0x20, kTexSeamlessCubemap = 0x40;

struct CUuuid {
  unsigned char bytes[16];
};
struct CUipcEventHandle {
  char reserved[64];
};
struct CUipcMemHandle {
  char reserved[64];
};

struct CUdevprop {
  int max_threads_per_block, max_threads_dim[3], max_grid_size[3], shared_mem_per_block, total_constant_memory,
      simd_width, mem_pitch, regs_per_block, clock_rate, texture_align;
};

struct CUexecAffinityParam {
  CUexecAffinityType type;
  unsigned sm_count;
};
struct CUctxCreateParams {
  CUexecAffinityParam* exec_affinity_params;
  int num_exec_affinity_params;
  void* cig_params;
};

// ---- launches -------------------------------------------------------------------------------------------------------

struct CUaccessPolicyWindow {
  void* base_ptr;
  std::size_t num_bytes;
  float hit_ratio;
  CUaccessProperty hit_prop, miss_prop;
};
union CUlaunchAttributeValue {
  char pad[64];
  CUaccessPolicyWindow access_policy_window;
  int cooperative;
  CUsynchronizationPolicy sync_policy;
  struct {
    unsigned x, y, z;
  } cluster_dim;
  CUclusterSchedulingPolicy cluster_scheduling_policy;
  int programmatic_stream_serialization_allowed;
  struct {
    CUevent event;
    int flags;
    int trigger_at_block_start;
  } programmatic_event;
  struct {
    CUevent event;
    int flags;
  } launch_completion_event;
  int priority;
  struct {
    int device_updatable;
    CUgraphDeviceNode device_node;
  } device_updatable_kernel_node;
  unsigned shared_mem_carveout;
};
using CUstreamAttrValue = CUlaunchAttributeValue;
using CUkernelNodeAttrValue = CUlaunchAttributeValue;
struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
};
struct CUlaunchConfig {
  unsigned grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes;
  CUstream stream;
  CUlaunchAttribute* attrs;
  unsigned num_attrs;
};
struct CUDA_LAUNCH_PARAMS {
  CUfunction function;
  unsigned grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes;
  CUstream stream;
  void** kernel_params;
};

// ---- memory ---------------------------------------------------------------------------------------------------------

struct CUDA_MEMCPY2D {
  std::size_t src_x_bytes, src_y;
  CUmemorytype src_type;
  const void* src_host;
  CUdeviceptr src_device;
  CUarray src_array;
  std::size_t src_pitch;
  std::size_t dst_x_bytes, dst_y;
  CUmemorytype dst_type;
  void* dst_host;
  CUdeviceptr dst_device;
  CUarray dst_array;
  std::size_t dst_pitch;
  std::size_t width_bytes, height;
};
/// CUDA_MEMCPY3D_PEER has the same layout; its two reserved fields are the contexts.
struct CUDA_MEMCPY3D {
  std::size_t src_x_bytes, src_y, src_z, src_lod;
  CUmemorytype src_type;
  const void* src_host;
  CUdeviceptr src_device;
  CUarray src_array;
  CUcontext src_context;
  std::size_t src_pitch, src_height;
  std::size_t dst_x_bytes, dst_y, dst_z, dst_lod;
  CUmemorytype dst_type;
  void* dst_host;
  CUdeviceptr dst_device;
  CUarray dst_array;
  CUcontext dst_context;
  std::size_t dst_pitch, dst_height;
  std::size_t width_bytes, height, depth;
};
struct CUDA_MEMCPY3D_PEER : CUDA_MEMCPY3D {};
struct CUDA_MEMCPY_NODE_PARAMS {
  int flags, reserved;
  CUcontext context;
  CUDA_MEMCPY3D copy;
};
struct CUDA_MEMCPY2D_v1;
struct CUDA_MEMCPY3D_v1;

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};
struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requested_handle_types;
  CUmemLocation location;
  void* win32_handle_meta_data;
  struct {
    unsigned char compression_type, gpu_direct_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
  } alloc_flags;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};
struct CUmemPoolProps {
  CUmemAllocationType alloc_type;
  CUmemAllocationHandleType handle_types;
  CUmemLocation location;
  void* win32_security_attributes;
  std::size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
};
struct CUmemPoolPtrExportData {
  unsigned char reserved[64];
};
struct CUmemcpyAttributes {
  CUmemcpySrcAccessOrder src_access_order;
  CUmemLocation src_hint, dst_hint;
  unsigned flags;
};
struct CUmemcpy3DOperand {
  CUmemcpy3DOperandType type;
  union {
    struct {
      CUdeviceptr pointer;
      std::size_t row_length, layer_height;  // in elements (bytes); 0 = the extent's
      CUmemLocation hint;
    } pointer;
    struct {
      CUarray array;
      std::size_t x, y, z;
    } array;
  };
};
struct CUDA_MEMCPY3D_BATCH_OP {
  CUmemcpy3DOperand src, dst;
  std::size_t width, height, depth;
  CUmemcpySrcAccessOrder src_access_order;
  unsigned flags;
};

/// Waits and writes share a layout; flush and barrier put their flags where `reserved` is.
union CUstreamBatchMemOpParams {
  CUstreamBatchMemOpType operation;
  struct {
    CUstreamBatchMemOpType operation;
    unsigned reserved;
    CUdeviceptr address;
    std::uint64_t value;  // 32-bit operations use the low half
    unsigned flags;
    CUdeviceptr alias;
  } value;
  std::uint64_t pad[6];
};

// ---- arrays, textures -----------------------------------------------------------------------------------------------

struct CUDA_ARRAY_DESCRIPTOR {
  std::size_t width, height;
  CUarray_format format;
  unsigned num_channels;
};
struct CUDA_ARRAY3D_DESCRIPTOR {
  std::size_t width, height, depth;
  CUarray_format format;
  unsigned num_channels, flags;
};
struct CUDA_ARRAY_DESCRIPTOR_v1;
struct CUDA_ARRAY3D_DESCRIPTOR_v1;
struct CUDA_ARRAY_SPARSE_PROPERTIES;
struct CUDA_ARRAY_MEMORY_REQUIREMENTS {
  std::size_t size, alignment;
  unsigned reserved[4];
};
struct CUarrayMapInfo;

struct CUDA_RESOURCE_DESC {
  CUresourcetype type;
  union {
    CUarray array;
    CUmipmappedArray mipmap;
    struct {
      CUdeviceptr pointer;
      CUarray_format format;
      unsigned num_channels;
      std::size_t bytes;
    } linear;
    struct {
      CUdeviceptr pointer;
      CUarray_format format;
      unsigned num_channels;
      std::size_t width, height, pitch_bytes;
    } pitch2d;
    int reserved[32];
  };
  unsigned flags;
};
struct CUDA_TEXTURE_DESC {
  CUaddress_mode address_mode[3];
  CUfilter_mode filter_mode;
  unsigned flags, max_anisotropy;
  CUfilter_mode mipmap_filter_mode;
  float mipmap_level_bias, min_mipmap_level_clamp, max_mipmap_level_clamp;
  float border_color[4];
  int reserved[12];
};
struct CUDA_RESOURCE_VIEW_DESC {
  CUresourceViewFormat format;
  std::size_t width, height, depth;
  unsigned first_mipmap_level, last_mipmap_level, first_layer, last_layer;
  unsigned reserved[16];
};

// ---- graphs ---------------------------------------------------------------------------------------------------------

struct CUDA_KERNEL_NODE_PARAMS_v1 {
  CUfunction function;
  unsigned grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes;
  void** kernel_params;
  void** extra;
};
struct CUDA_KERNEL_NODE_PARAMS_v2 {
  CUfunction function;
  unsigned grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes;
  void** kernel_params;
  void** extra;
  CUkernel kernel;
  CUcontext context;
};
struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr dst;
  std::size_t pitch;
  unsigned value, element_size;
  std::size_t width, height;
};
struct CUDA_HOST_NODE_PARAMS {
  CUhostFn fn;
  void* user_data;
};
struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
  CUcontext context;
  unsigned count;
  CUstreamBatchMemOpParams* params;
  unsigned flags;
};
struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps pool_props;
  const CUmemAccessDesc* access_descs;
  std::size_t access_desc_count, bytes;
  CUdeviceptr pointer;
};
struct CUDA_CONDITIONAL_NODE_PARAMS {
  CUgraphConditionalHandle handle;
  CUgraphConditionalNodeType type;
  unsigned size;
  CUgraph* graphs;
  CUcontext context;
};
struct CUDA_CHILD_GRAPH_NODE_PARAMS {
  CUgraph graph;
  CUgraphChildGraphNodeOwnership ownership;
};
struct CUgraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  std::uint64_t flags;
  CUstream upload_stream;
  CUgraphNode error_node;
  CUgraphInstantiateResult result;
};
struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode error_node, error_from_node;
};
struct CUgraphNodeParams {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    CUDA_MEMCPY_NODE_PARAMS memcpy;
    struct {
      CUDA_MEMSET_NODE_PARAMS params;
      CUcontext context;
    } memset;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_CHILD_GRAPH_NODE_PARAMS graph;
    CUevent event;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUdeviceptr free_pointer;
    CUDA_BATCH_MEM_OP_NODE_PARAMS mem_op;
    CUDA_CONDITIONAL_NODE_PARAMS conditional;
  };
  long long reserved2;
};

// ---- only passed by pointer to functions that are refused -----------------------------------------------------------

struct CUasyncNotificationInfo;
struct CUcheckpointCheckpointArgs;
struct CUcheckpointLockArgs;
struct CUcheckpointRestoreArgs;
struct CUcheckpointUnlockArgs;
struct CUdevResource;
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC;
struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS;
struct CUDA_EXT_SEM_WAIT_NODE_PARAMS;
struct CUmemDecompressParams;
struct CUmulticastObjectProp;
struct CUtensorMap;

}  // namespace gridloom::cuda
