// Virtual memory management: address ranges, physical memory, mappings.
#include "interpose/hooks/vmm.h"

#include <map>
#include <mutex>

#include "hooks/support.h"
#include "sim/exec/extent.h"

namespace gridloom::hooks {

namespace {

constexpr std::size_t kGranularity = 2u << 20;  // what real devices report

struct Physical {
  std::size_t bytes = 0;
  CUmemAllocationProp prop{};
  unsigned references = 1;
};
struct Mapping {
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle physical = 0;
  CUmemAllocationProp prop{};  ///< of the memory, whose handle may have been released
  std::uint64_t id = 0;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};
struct Table {
  std::mutex mutex;
  std::map<CUmemGenericAllocationHandle, Physical> physical;
  std::map<CUdeviceptr, Mapping> mappings;
  std::uint64_t mappings_made = 0;

  /// The mapping that the address is in; the end when it is in none.
  std::map<CUdeviceptr, Mapping>::iterator MappingAt(CUdeviceptr pointer) {
    const auto next = mappings.upper_bound(pointer);
    if (next == mappings.begin()) return mappings.end();
    const auto found = std::prev(next);
    return exec::LiesIn(found->first, found->second.bytes, pointer, 1) ? found : mappings.end();
  }
};
Table& TheTable() {
  static Table* const table = new Table;
  return *table;
}

bool AtHost(const CUmemAllocationProp& prop) { return prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }

CUresult TheMemory(Process& process, exec::DeviceMemory** memory) {
  Context* const context = session::CurrentContext();
  Device& device = context != nullptr ? context->device() : process.first_device();
  if (device.backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  *memory = &device.memory();
  return CUDA_SUCCESS;
}

CUresult CheckProp(Process& process, const CUmemAllocationProp* prop) {
  GL_CU_REQUIRE(prop != nullptr && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED);
  if ((prop->requested_handle_types & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    Device* device = nullptr;
    return FindDevice(process, prop->location.id, &device);
  }
  return prop->location.type >= CU_MEM_LOCATION_TYPE_HOST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

std::optional<MappedMemory> MappedAt(CUdeviceptr pointer) {
  const std::lock_guard lock(TheTable().mutex);
  const auto found = TheTable().MappingAt(pointer);
  if (found == TheTable().mappings.end()) return std::nullopt;
  const Mapping& mapping = found->second;
  return MappedMemory{found->first,     mapping.bytes,        mapping.id,
                      mapping.physical, AtHost(mapping.prop), mapping.prop.requested_handle_types};
}

CUresult cuMemGetAllocationGranularity(Process& process, std::size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags) {
  GL_CU_REQUIRE(granularity != nullptr && prop != nullptr);
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(Process& process, CUdeviceptr* pointer, std::size_t bytes, std::size_t align,
                             CUdeviceptr hint, std::uint64_t flags) {
  GL_CU_REQUIRE(pointer != nullptr && bytes != 0 && bytes % kGranularity == 0 && flags == 0 &&
                (align & (align - 1)) == 0);
  if (!exec::Extent(bytes).fits() || !exec::Extent(align).fits()) return CUDA_ERROR_OUT_OF_MEMORY;
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  *pointer = memory->Reserve(bytes, std::max(align, kGranularity), hint);
  return *pointer != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(Process& process, CUdeviceptr pointer, std::size_t bytes) {
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  return memory->Release(pointer, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(Process& process, CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* prop, std::uint64_t flags) {
  GL_CU_REQUIRE(handle != nullptr && bytes != 0 && bytes % kGranularity == 0 && flags == 0);
  GL_CU_TRY(CheckProp(process, prop));
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  const std::uint64_t physical = memory->CreatePhysical(bytes, AtHost(*prop));
  if (physical == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(TheTable().mutex);
  TheTable().physical[physical] = {bytes, *prop};
  *handle = physical;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(Process& process, CUmemGenericAllocationHandle handle) {
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  const std::lock_guard lock(TheTable().mutex);
  const auto found = TheTable().physical.find(handle);
  GL_CU_REQUIRE(found != TheTable().physical.end());
  if (--found->second.references != 0) return CUDA_SUCCESS;
  TheTable().physical.erase(found);
  memory->DestroyPhysical(handle);  // the memory itself goes with its last mapping
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(Process& process, void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, std::uint64_t flags) {
  GL_CU_REQUIRE(shareable != nullptr && flags == 0);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  const std::lock_guard lock(TheTable().mutex);
  const auto found = TheTable().physical.find(handle);
  GL_CU_REQUIRE(found != TheTable().physical.end() && (found->second.prop.requested_handle_types & type) != 0);
  const int descriptor = memory->ExportPhysical(handle);
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shareable) = descriptor;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(Process& process, CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType type) {
  GL_CU_REQUIRE(handle != nullptr);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  std::uint64_t bytes = 0;
  bool at_host = false;
  const std::uint64_t physical =
      memory->ImportPhysical(static_cast<int>(reinterpret_cast<std::uintptr_t>(os_handle)), &bytes, &at_host);
  if (physical == 0) return CUDA_ERROR_INVALID_VALUE;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requested_handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location.type = at_host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  const std::lock_guard lock(TheTable().mutex);
  TheTable().physical[physical] = {bytes, prop};
  *handle = physical;
  return CUDA_SUCCESS;
}

CUresult cuMemMap(Process& process, CUdeviceptr pointer, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, std::uint64_t flags) {
  GL_CU_REQUIRE(bytes != 0 && bytes % kGranularity == 0 && offset % kGranularity == 0 && flags == 0);
  GL_CU_REQUIRE(pointer != 0 && exec::IsRange(pointer, bytes));
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  const std::lock_guard lock(TheTable().mutex);
  const auto found = TheTable().physical.find(handle);
  GL_CU_REQUIRE(found != TheTable().physical.end() && exec::LiesIn(0, found->second.bytes, offset, bytes));
  if (!memory->Map(pointer, bytes, handle, offset)) return CUDA_ERROR_INVALID_VALUE;
  memory->Protect(pointer, bytes, false, false);  // until cuMemSetAccess
  TheTable().mappings[pointer] = {bytes, handle, found->second.prop, ++TheTable().mappings_made};
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(Process& process, CUdeviceptr pointer, std::size_t bytes) {
  GL_CU_REQUIRE(bytes != 0 && exec::IsRange(pointer, bytes));
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  if (Context* const context = session::CurrentContext()) context->WaitAll();
  const std::lock_guard lock(TheTable().mutex);
  auto& mappings = TheTable().mappings;
  // A part of a reserved range that has nothing mapped is no error.
  const auto range = memory->Find(pointer);
  const bool reserved =
      range && range->kind == exec::MemoryKind::kReserved && exec::LiesIn(range->base, range->bytes, pointer, bytes);
  const auto next = mappings.lower_bound(pointer);
  const bool inside = TheTable().MappingAt(pointer) != mappings.end();
  if (reserved && !inside && (next == mappings.end() || next->first >= pointer + bytes)) return CUDA_SUCCESS;
  // Whole mappings only, one or several in a row.
  CUdeviceptr at = pointer;
  while (at < pointer + bytes) {
    const auto found = mappings.find(at);
    GL_CU_REQUIRE(found != mappings.end() && at + found->second.bytes <= pointer + bytes);
    at += found->second.bytes;
  }
  if (!memory->Unmap(pointer, bytes)) return CUDA_ERROR_INVALID_VALUE;
  mappings.erase(mappings.lower_bound(pointer), mappings.lower_bound(pointer + bytes));
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(Process& process, CUdeviceptr pointer, std::size_t bytes, const CUmemAccessDesc* descriptions,
                        std::size_t count) {
  GL_CU_REQUIRE(descriptions != nullptr && count != 0 && bytes != 0 && exec::IsRange(pointer, bytes));
  exec::DeviceMemory* memory = nullptr;
  GL_CU_TRY(TheMemory(process, &memory));
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  for (std::size_t i = 0; i < count; ++i) {
    if (descriptions[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      Device* device = nullptr;
      GL_CU_TRY(FindDevice(process, descriptions[i].location.id, &device));
    }
    access = std::max(access, descriptions[i].flags);
  }
  const std::lock_guard lock(TheTable().mutex);
  auto& mappings = TheTable().mappings;
  for (CUdeviceptr at = pointer; at < pointer + bytes;) {
    const auto found = mappings.find(at);
    GL_CU_REQUIRE(found != mappings.end());
    at += found->second.bytes;
  }
  for (auto it = mappings.find(pointer); it != mappings.end() && it->first < pointer + bytes; ++it)
    it->second.access = access;
  const bool read = access != CU_MEM_ACCESS_FLAGS_PROT_NONE, write = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return memory->Protect(pointer, bytes, read, write) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAccess(Process& process, std::uint64_t* flags, const CUmemLocation* location, CUdeviceptr pointer) {
  GL_CU_REQUIRE(flags != nullptr && location != nullptr);
  const std::lock_guard lock(TheTable().mutex);
  const auto found = TheTable().MappingAt(pointer);
  GL_CU_REQUIRE(found != TheTable().mappings.end());
  *flags = found->second.access;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(Process& process, CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  GL_CU_REQUIRE(prop != nullptr);
  const std::lock_guard lock(TheTable().mutex);
  const auto found = TheTable().physical.find(handle);
  GL_CU_REQUIRE(found != TheTable().physical.end());
  *prop = found->second.prop;
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(Process& process, CUmemGenericAllocationHandle* handle, void* address) {
  GL_CU_REQUIRE(handle != nullptr);
  const auto pointer = reinterpret_cast<CUdeviceptr>(address);
  const std::lock_guard lock(TheTable().mutex);
  const auto found = TheTable().MappingAt(pointer);
  GL_CU_REQUIRE(found != TheTable().mappings.end());
  const auto physical = TheTable().physical.find(found->second.physical);
  GL_CU_REQUIRE(physical != TheTable().physical.end());
  ++physical->second.references;
  *handle = physical->first;
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
