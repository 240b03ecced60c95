// What a pointer is: attributes of single pointers and of managed ranges; hints about managed memory.
#include <cstring>
#include <map>
#include <mutex>

#include "hooks/support.h"
#include "interpose/hooks/pool.h"
#include "interpose/hooks/vmm.h"
#include "interpose/session/operation.h"

namespace gridloom::hooks {

namespace {

/// Attributes of one pointer. Memory nobody gave out is INVALID_VALUE, or zeros when asked in bulk (see below).
CUresult GetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  Context* const context = session::CurrentContext();
  Device& device = context != nullptr ? context->device() : TheProcess().first_device();
  if (device.backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  const auto found = device.memory().Find(pointer);
  GL_CU_REQUIRE(found);
  const exec::Allocation& a = *found;
  const auto pool = session::MemoryPool::Find(a.base);
  auto* const owner = static_cast<Context*>(a.tag);
  const bool host = a.kind == exec::MemoryKind::kPinned || a.kind == exec::MemoryKind::kRegistered;
  const bool managed = a.kind == exec::MemoryKind::kManaged;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      const CUcontext context = owner != nullptr ? owner->handle() : device.primary().handle();
      std::memcpy(data, &context, sizeof(context));
      return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      GL_CU_REQUIRE(!(host && pool != nullptr && !pool->device_access()));  // a pool of host memory that no device was let into
      *static_cast<CUdeviceptr*>(data) = pointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      GL_CU_REQUIRE(host || managed);
      *static_cast<CUdeviceptr*>(data) = pointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: {
      const auto block = owner != nullptr ? owner->memory.Find(a.base) : std::nullopt;
      *static_cast<unsigned*>(data) = block && block->sync_memops;
      return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *static_cast<std::uint64_t*>(data) = a.id; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(data) = managed; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(data) = device.ordinal(); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: *static_cast<bool*>(data) = false; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(data) = a.base; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<std::size_t*>(data) = a.bytes; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED: *static_cast<bool*>(data) = a.kind != exec::MemoryKind::kReserved; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *static_cast<std::uint64_t*>(data) = HandleTypesOf(pointer); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *static_cast<bool*>(data) = false; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *static_cast<unsigned*>(data) = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      const CUmemoryPool handle = pool != nullptr ? Publish(pool) : nullptr;
      std::memcpy(data, &handle, sizeof(handle));
      return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *static_cast<std::size_t*>(data) = a.bytes; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *static_cast<CUdeviceptr*>(data) = a.base; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *static_cast<std::uint64_t*>(data) = a.id; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: *static_cast<bool*>(data) = false; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

std::size_t BytesOf(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return 4;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return 1;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return 16;
    default: return 8;
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  GL_CU_REQUIRE(data != nullptr);
  return GetAttribute(data, attribute, pointer);
}

// In bulk, what does not apply to the pointer is zero and no error; that is how the runtime learns that memory is not ours.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr pointer) {
  GL_CU_REQUIRE(attributes != nullptr && data != nullptr);
  for (unsigned i = 0; i < count; ++i) {
    if (GetAttribute(data[i], attributes[i], pointer) == CUDA_SUCCESS) continue;
    std::memset(data[i], 0, BytesOf(attributes[i]));
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(data[i]) = kDeviceInvalid;
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  GL_CU_REQUIRE(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
  const auto found = ThisContext().device().memory().Find(pointer);
  GL_CU_REQUIRE(found && found->tag != nullptr);
  const bool set = static_cast<Context*>(found->tag)->memory.SetSyncMemops(found->base, *static_cast<const int*>(value) != 0);
  return set ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- managed memory: hints change nothing where host and device share memory, but are remembered ------------------------------

namespace {

struct Hints {
  int read_mostly = 0;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, kDeviceInvalid};
  CUmemLocation prefetched{CU_MEM_LOCATION_TYPE_INVALID, kDeviceInvalid};
  bool accessed_by_device = false, accessed_by_host = false;
};

struct HintTable {
  std::mutex mutex;
  std::map<std::uint64_t, Hints> by_allocation;  // by allocation id, which is never reused
};
HintTable& TheHints() {
  static HintTable* const table = new HintTable;
  return *table;
}

/// The allocation that contains the whole range.
CUresult FindRange(CUdeviceptr pointer, std::size_t bytes, exec::Allocation* allocation) {
  GL_CU_REQUIRE(pointer != 0 && bytes != 0);
  const auto found = ThisContext().device().memory().Find(pointer);
  GL_CU_REQUIRE(found && pointer + bytes <= found->base + found->bytes);
  *allocation = *found;
  return CUDA_SUCCESS;
}
CUresult FindManaged(CUdeviceptr pointer, std::size_t bytes, exec::Allocation* allocation) {
  GL_CU_TRY(FindRange(pointer, bytes, allocation));
  // Variables declared __managed__ belong to their module.
  GL_CU_REQUIRE(allocation->kind == exec::MemoryKind::kManaged || allocation->kind == exec::MemoryKind::kModule);
  return CUDA_SUCCESS;
}

CUmemLocation LocationOf(CUdevice device) {
  return device == kDeviceCpu ? CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0} : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, device};
}
CUresult CheckLocation(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    return TheProcess().FindDevice(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  }
  return location.type >= CU_MEM_LOCATION_TYPE_HOST && location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ? CUDA_SUCCESS
                                                                                                               : CUDA_ERROR_INVALID_VALUE;
}
/// Device number as the attributes report it: -1 for the host, -2 for nowhere.
int NumberOf(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_INVALID) return kDeviceInvalid;
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : kDeviceCpu;
}

}  // namespace

CUresult cuMemAdvise_v2(CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice, CUmemLocation location) {
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, bytes, &allocation));
  const bool located = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                       advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (located) GL_CU_TRY(CheckLocation(location));
  const std::lock_guard lock(TheHints().mutex);
  Hints& hints = TheHints().by_allocation[allocation.id];
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: hints.read_mostly = 1; break;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: hints.read_mostly = 0; break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: hints.preferred = location; break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: hints.preferred = Hints{}.preferred; break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      (location.type == CU_MEM_LOCATION_TYPE_DEVICE ? hints.accessed_by_device : hints.accessed_by_host) =
          advice == CU_MEM_ADVISE_SET_ACCESSED_BY;
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuMemAdvise(CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(pointer, bytes, advice, LocationOf(device));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, std::size_t bytes, CUmemLocation location, unsigned flags, CUstream handle) {
  GL_CU_REQUIRE(flags == 0);
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, bytes, &allocation));
  GL_CU_TRY(CheckLocation(location));
  {
    const std::lock_guard lock(TheHints().mutex);
    TheHints().by_allocation[allocation.id].prefetched = location;
  }
  return session::Submit(*stream, session::EmptyOp{}, session::Waiting::kIfIdle);
}
CUresult cuMemPrefetchAsync(CUdeviceptr pointer, std::size_t bytes, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync_v2(pointer, bytes, LocationOf(device), 0, stream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* pointers, std::size_t* bytes, std::size_t count, CUmemLocation* locations,
                                 std::size_t* indices, std::size_t location_count, std::uint64_t flags, CUstream stream) {
  GL_CU_REQUIRE(pointers != nullptr && bytes != nullptr && count != 0 && locations != nullptr && indices != nullptr &&
                location_count != 0 && flags == 0);
  std::size_t location = 0;
  for (std::size_t i = 0; i < count; ++i) {
    while (location + 1 < location_count && indices[location + 1] <= i) ++location;
    GL_CU_TRY(cuMemPrefetchAsync_v2(pointers[i], bytes[i], locations[location], 0, stream));
  }
  return CUDA_SUCCESS;
}
// Discarding allows losing the contents; keeping them is a legal outcome.
CUresult cuMemDiscardBatchAsync(CUdeviceptr* pointers, std::size_t* bytes, std::size_t count, std::uint64_t flags, CUstream handle) {
  GL_CU_REQUIRE(pointers != nullptr && bytes != nullptr && count != 0 && flags == 0);
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  for (std::size_t i = 0; i < count; ++i) {
    exec::Allocation allocation;
    GL_CU_TRY(FindManaged(pointers[i], bytes[i], &allocation));
  }
  return session::Submit(*stream, session::EmptyOp{}, session::Waiting::kIfIdle);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* pointers, std::size_t* bytes, std::size_t count, CUmemLocation* locations,
                                           std::size_t* indices, std::size_t location_count, std::uint64_t flags, CUstream stream) {
  return cuMemPrefetchBatchAsync(pointers, bytes, count, locations, indices, location_count, flags, stream);
}

CUresult cuMemRangeGetAttribute(void* data, std::size_t data_bytes, CUmem_range_attribute attribute, CUdeviceptr pointer,
                                std::size_t bytes) {
  GL_CU_REQUIRE(data != nullptr && data_bytes >= 4 && data_bytes % 4 == 0);
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, bytes, &allocation));
  Hints hints;
  {
    const std::lock_guard lock(TheHints().mutex);
    hints = TheHints().by_allocation[allocation.id];
  }
  auto* const numbers = static_cast<int*>(data);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *numbers = hints.read_mostly; return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *numbers = NumberOf(hints.preferred); return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *numbers = NumberOf(hints.prefetched); return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: *numbers = hints.preferred.type; return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: *numbers = hints.preferred.id; return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: *numbers = hints.prefetched.type; return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: *numbers = hints.prefetched.id; return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      std::size_t at = 0;
      const std::size_t room = data_bytes / 4;
      if (hints.accessed_by_device && at < room) numbers[at++] = ThisContext().device().ordinal();
      if (hints.accessed_by_host && at < room) numbers[at++] = kDeviceCpu;
      while (at < room) numbers[at++] = kDeviceInvalid;
      return CUDA_SUCCESS;
    }
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuMemRangeGetAttributes(void** data, std::size_t* data_bytes, CUmem_range_attribute* attributes, std::size_t count,
                                 CUdeviceptr pointer, std::size_t bytes) {
  GL_CU_REQUIRE(data != nullptr && data_bytes != nullptr && attributes != nullptr && count != 0);
  for (std::size_t i = 0; i < count; ++i) GL_CU_TRY(cuMemRangeGetAttribute(data[i], data_bytes[i], attributes[i], pointer, bytes));
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr pointer, std::size_t, unsigned flags) {
  GL_CU_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, 1, &allocation));
  return session::Submit(*stream, session::EmptyOp{}, session::Waiting::kIfIdle);
}

}  // namespace gridloom::hooks
