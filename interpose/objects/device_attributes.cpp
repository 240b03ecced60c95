// Answers of cuDeviceGetAttribute: the device file's numbers, and what this driver can do.
#include <climits>

#include "interpose/objects/device.h"

namespace gridloom::session {

using namespace cuda;

int Device::Attribute(CUdevice_attribute attribute) const {
  const sim::DeviceSpec& s = spec_;
  const auto khz = [](std::uint32_t mhz) { return static_cast<int>(mhz * 1000); };
  const bool at_least_80 = s.compute_capability >= ComputeCapability{8, 0};
  const bool at_least_90 = s.compute_capability >= ComputeCapability{9, 0};
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return s.block.max_threads;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: return s.block.max_x;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return s.block.max_y;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return s.block.max_z;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return s.grid.max_x;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: return s.grid.max_y;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return s.grid.max_z;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return s.block.shared_bytes;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return s.memory.constant_bytes;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return sim::DeviceSpec::kWarpSize;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return s.memory.max_pitch_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: return s.block.registers;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return khz(s.sm.clock_mhz);
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: return s.texture.alignment_bytes;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP: return s.copy_engines > 0;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return s.sm.count;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY: return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH: return s.texture.max_1d;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH: return s.texture.max_2d_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT: return s.texture.max_2d_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH: return s.texture.max_3d_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT: return s.texture.max_3d_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH: return s.texture.max_3d_depth;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH: return s.texture.max_2d_layered_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT: return s.texture.max_2d_layered_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS: return s.texture.max_2d_layers;
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT: return s.surface.alignment_bytes;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS: return 1;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED: return s.memory.ecc;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return pci_bus();
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: return kPciDevice;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: return kPciDomain;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return khz(s.memory.clock_mhz);
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return s.memory.bus_bits;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return s.l2.size_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return s.sm.max_threads;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return s.copy_engines;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: return 1;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH: return s.texture.max_1d_layered;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS: return s.texture.max_1d_layers;
    case CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER: return 1;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH: return s.texture.max_2d_gather_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT: return s.texture.max_2d_gather_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE: return s.texture.max_3d_alternate_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE: return s.texture.max_3d_alternate_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE: return s.texture.max_3d_alternate_depth;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: return s.texture.pitch_alignment_bytes;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH: return s.texture.max_cubemap;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH: return s.texture.max_cubemap_layered;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS: return s.texture.max_cubemap_layers;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH: return s.surface.max_1d;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH: return s.surface.max_2d_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT: return s.surface.max_2d_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH: return s.surface.max_3d_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT: return s.surface.max_3d_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH: return s.surface.max_3d_depth;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH: return s.surface.max_1d_layered;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS: return s.surface.max_1d_layers;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH: return s.surface.max_2d_layered_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT: return s.surface.max_2d_layered_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS: return s.surface.max_2d_layers;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH: return s.surface.max_cubemap;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH: return s.surface.max_cubemap_layered;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS: return s.surface.max_cubemap_layers;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH: return s.texture.max_1d_linear;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH: return s.texture.max_2d_linear_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT: return s.texture.max_2d_linear_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH: return s.texture.max_2d_linear_pitch_bytes;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH: return s.texture.max_2d_mipmapped_width;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT: return s.texture.max_2d_mipmapped_height;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH: return s.texture.max_1d_mipmapped;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return s.compute_capability.major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return s.compute_capability.minor;
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return s.sm.shared_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return s.sm.registers;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: return 1;
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID: return ordinal_;
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED: return 0;  // as of a board on PCIe
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: return s.sm.fp32_to_fp64_ratio;
    // A kernel touches device and registered memory only, so pageable memory stays out of reach, as on most real GPUs.
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: return 0;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: return 1;
    // The older forms of stream memory operations had to be switched on, and drivers of CUDA 12 and later say that they
    // are off.
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1: return 0;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1: return 0;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1: return 0;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH: return s.compute_capability >= ComputeCapability{6, 0};
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return s.block.shared_optin_bytes;
    case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES: return 0;
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST: return 0;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return s.sm.max_blocks;
    case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE: return s.l2.persisting_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE: return s.l2.max_window_bytes;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return s.block.shared_reserved_bytes;
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED: return at_least_80;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: return s.cluster.max_blocks > 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS: return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR: return 1;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT: return at_least_90 ? 4 : 1;  // all of them order all memory
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: return at_least_90;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS: return 0;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID: return -1;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE:
      return INT_MAX;  // no tensor is large: all maps are of one class
    default: return 0;
  }
}

}  // namespace gridloom::session
