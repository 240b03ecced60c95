// Devices and their primary contexts.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "hooks/support.h"
#include "interpose/objects/array.h"
#include "interpose/objects/pool.h"

namespace gridloom::hooks {

CUresult cuDeviceGet(Process& process, CUdevice* device, int ordinal) {
  GL_CU_REQUIRE(device != nullptr);
  Device* found = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &found));
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(Process& process, int* count) {
  GL_CU_REQUIRE(count != nullptr);
  *count = static_cast<int>(process.device_count());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(Process& process, char* name, int length, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(name != nullptr && length > 0);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  std::snprintf(name, static_cast<std::size_t>(length), "%s", device->spec().name.c_str());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(Process& process, CUuuid* uuid, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(uuid != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  *uuid = device->uuid();
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(Process& process, std::size_t* bytes, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(bytes != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  *bytes = device->memory_bytes();
  return CUDA_SUCCESS;
}

// Succeeds for numbers nobody knows: the runtime asks for attributes of newer drivers and gives up on the first error.
namespace {

// The newest attribute of CUDA 13.5.
constexpr CUdevice_attribute kNewestAttribute = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED;

}  // namespace

CUresult cuDeviceGetAttribute(Process& process, int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(value != nullptr && attribute > 0 && attribute <= kNewestAttribute);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  *value = device->Attribute(attribute);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(Process& process, CUdevprop* prop, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(prop != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  const auto get = [device](CUdevice_attribute attribute) { return device->Attribute(attribute); };
  *prop = {get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
           {get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
           {get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
           get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
           get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
           get(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
           get(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
           get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
           get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
           get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)};
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(Process& process, int* major, int* minor, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(major != nullptr && minor != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  *major = static_cast<int>(device->compute_capability().major);
  *minor = static_cast<int>(device->compute_capability().minor);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(Process& process, char* text, int length, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(text != nullptr && length >= 13);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  std::snprintf(text, static_cast<std::size_t>(length), "%04x:%02x:%02x.0", Device::kPciDomain, device->pci_bus(),
                Device::kPciDevice);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(Process& process, CUdevice* ordinal, const char* text) {
  GL_CU_REQUIRE(ordinal != nullptr && text != nullptr);
  unsigned domain = 0, bus = 0, number = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &number, &function) < 3) {
    domain = 0;
    GL_CU_REQUIRE(std::sscanf(text, "%x:%x.%x", &bus, &number, &function) >= 2);
  }
  for (std::size_t i = 0; i < process.device_count(); ++i) {
    const Device* device = process.FindDevice(static_cast<int>(i));
    if (domain != Device::kPciDomain || bus != static_cast<unsigned>(device->pci_bus()) || number != Device::kPciDevice)
      continue;
    *ordinal = static_cast<int>(i);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(Process& process, int* can, CUdevice ordinal, CUdevice peer) {
  Device *a = nullptr, *b = nullptr;
  GL_CU_REQUIRE(can != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &a));
  GL_CU_TRY(FindDevice(process, peer, &b));
  *can = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(Process& process, int* value, CUdevice_P2PAttribute, CUdevice ordinal, CUdevice peer) {
  Device *a = nullptr, *b = nullptr;
  GL_CU_REQUIRE(value != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &a));
  GL_CU_TRY(FindDevice(process, peer, &b));
  if (a == b) return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(Process& process, std::size_t* width, CUarray_format format,
                                            unsigned channels, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(width != nullptr && session::FormatOf(format) && channels != 0);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  *width = device->spec().texture.max_1d_linear;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(Process& process, int* supported, CUexecAffinityType, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(supported != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  *supported = 0;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(Process& process, CUmoduleLoadingMode* mode) {
  GL_CU_REQUIRE(mode != nullptr);
  *mode = process.eager_loading() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

// ---- primary contexts

CUresult cuDevicePrimaryCtxRetain(Process& process, CUcontext* context, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(context != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  const std::lock_guard lock(device->primary_mutex());
  if (device->backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  Context& primary = device->primary();
  if (primary.retain_count++ == 0 && primary.destroyed()) primary.Revive();
  *context = primary.handle();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(Process& process, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  const std::lock_guard lock(device->primary_mutex());
  Context& primary = device->primary();
  if (primary.retain_count == 0) return CUDA_ERROR_INVALID_CONTEXT;
  // The runtime's exit handler comes here. The program has ended then: nothing of that is in its timeline.
  if (--primary.retain_count == 0) primary.Destroy();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(Process& process, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  const std::lock_guard lock(device->primary_mutex());
  Context& primary = device->primary();
  primary.WaitAll();
  primary.Destroy();
  // Whoever still holds a reference keeps the handle; the next use finds a fresh context behind it.
  primary.Revive();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(Process& process, CUdevice ordinal, unsigned flags) {
  Device* device = nullptr;
  GL_CU_REQUIRE((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  device->primary().flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(Process& process, CUdevice ordinal, unsigned* flags, int* active) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  const std::lock_guard lock(device->primary_mutex());
  Store(flags, device->primary().flags.load());
  Store(active, device->primary().retain_count > 0);
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
