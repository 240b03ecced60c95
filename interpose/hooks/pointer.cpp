// What a pointer is: attributes of single pointers and of managed ranges; hints about managed memory.
#include <cstring>

#include "hooks/support.h"
#include "interpose/hooks/pool.h"
#include "interpose/hooks/vmm.h"
#include "interpose/launch/submit.h"
#include "interpose/objects/allocation_notes.h"
#include "interpose/objects/operation.h"
#include "interpose/objects/residency.h"
#include "sim/exec/extent.h"
#include "sim/exec/program.h"

namespace gridloom::hooks {

namespace {

using exec::MemoryKind;

/// The memory that a pointer leads to.
struct Pointee {
  Device& device;
  exec::Allocation allocation;
  std::shared_ptr<session::MemoryPool> pool;  ///< it is a block of; null: of none
  std::optional<MappedMemory> mapped;         ///< of a reserved range: what is there

  bool managed() const { return allocation.kind == MemoryKind::kManaged; }
  bool at_host() const {
    return allocation.kind == MemoryKind::kPinned || allocation.kind == MemoryKind::kRegistered ||
           (mapped && mapped->at_host);
  }
  bool reserved() const { return allocation.kind == MemoryKind::kReserved; }
  /// The pool, as far as the program can have a handle of it.
  CUmemoryPool pool_handle() const {
    return pool != nullptr && pool != device.graph_pool() && !pool->closed() ? Publish(device.process(), pool)
                                                                             : nullptr;
  }
};

/// Nothing for memory that the program was not given, or has given back: a pool keeps blocks that are free.
std::optional<Pointee> PointeeOf(Device& device, CUdeviceptr pointer) {
  const auto found = device.memory().Find(pointer);
  if (!found || found->kind == MemoryKind::kInternal) return std::nullopt;
  Pointee to{device, *found, session::MemoryPool::Find(found->base), std::nullopt};
  if (to.reserved()) to.mapped = MappedAt(pointer);
  else if (to.allocation.owner == nullptr && to.pool == nullptr) return std::nullopt;
  return to;
}

/// The context that the memory is of. Pools, graphs and mappings belong to the device: their memory has none.
CUcontext ContextOf(Process& process, const Pointee& to) {
  if (auto* const context = to.allocation.OwnerAs<Context>()) return context->handle();
  const auto* const program = to.allocation.OwnerAs<const exec::Program>();
  if (program == nullptr) return nullptr;
  Context* const context = process.FindContext(*program);
  return (context != nullptr ? *context : to.device.primary()).handle();
}

/// Ids of mappings and of what is mapped are counted by others than those of allocations.
constexpr std::uint64_t kMappingIds = std::uint64_t{1} << 62, kBlockIds = std::uint64_t{1} << 61;

template <typename T>
CUresult Store(void* data, T value) {
  std::memcpy(data, &value, sizeof(value));
  return CUDA_SUCCESS;
}

/// What holds for reserved ranges, too, whether something is mapped there or not.
CUresult GetRangeAttribute(void* data, CUpointer_attribute attribute, const Pointee& to) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return Store<CUdeviceptr>(data, to.allocation.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return Store<std::size_t>(data, to.allocation.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED: return Store<bool>(data, !to.reserved() || to.mapped);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult GetAttribute(Process& process, void* data, CUpointer_attribute attribute, CUdeviceptr pointer,
                      const Pointee& to) {
  const exec::Allocation& a = to.allocation;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return Store<CUcontext>(data, ContextOf(process, to));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Store<unsigned>(data, to.at_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      GL_CU_REQUIRE(!(to.at_host() && to.pool != nullptr &&
                      !to.pool->device_access()));  // host memory that no device was let into
      return Store<CUdeviceptr>(data, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      GL_CU_REQUIRE(to.at_host() || to.managed());
      return Store<CUdeviceptr>(data, pointer);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return Store<unsigned>(data, to.device.notes().Of(a).sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Store<std::uint64_t>(data, to.mapped ? kMappingIds + to.mapped->id : a.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return Store<unsigned>(data, to.managed());
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return Store<int>(data, to.device.ordinal());
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Store<std::uint64_t>(data, to.mapped ? to.mapped->handle_types : CU_MEM_HANDLE_TYPE_NONE);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return Store<unsigned>(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return Store<CUmemoryPool>(data, to.pool_handle());
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return Store<std::size_t>(data, to.mapped ? to.mapped->bytes : a.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return Store<CUdeviceptr>(data, to.mapped ? to.mapped->base : a.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Store<std::uint64_t>(data, to.mapped ? kBlockIds + to.mapped->block_id : a.id);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return Store<bool>(data, false);
    default: return GetRangeAttribute(data, attribute, to);
  }
}

/// Attributes of one pointer. Memory nobody gave out is INVALID_VALUE, or zeros when asked in bulk (see below).
CUresult GetAttribute(Process& process, void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  GL_CU_REQUIRE(data != nullptr);
  Context* const context = session::CurrentContext();
  Device& device = context != nullptr ? context->device() : process.first_device();
  if (device.backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  const auto to = PointeeOf(device, pointer);
  GL_CU_REQUIRE(to);
  if (to->reserved() && !to->mapped) return GetRangeAttribute(data, attribute, *to);
  return GetAttribute(process, data, attribute, pointer, *to);
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

CUresult cuPointerGetAttribute(Process& process, void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return GetAttribute(process, data, attribute, pointer);
}

// In bulk, what does not apply to the pointer is zero and no error; that is how the runtime learns that memory is not
// ours.
CUresult cuPointerGetAttributes(Process& process, unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
  GL_CU_REQUIRE(attributes != nullptr && data != nullptr);
  for (unsigned i = 0; i < count; ++i) {
    GL_CU_REQUIRE(data[i] != nullptr);
    if (GetAttribute(process, data[i], attributes[i], pointer) == CUDA_SUCCESS) continue;
    std::memset(data[i], 0, BytesOf(attributes[i]));
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(data[i]) = kDeviceInvalid;
  }
  return CUDA_SUCCESS;
}

// Blocks of pools and mappings cannot be told to synchronise; the context can (CU_CTX_SYNC_MEMOPS).
CUresult cuPointerSetAttribute(Process& process, const void* value, CUpointer_attribute attribute,
                               CUdeviceptr pointer) {
  GL_CU_REQUIRE(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
  Device& device = ThisContext().device();
  const auto to = PointeeOf(device, pointer);
  GL_CU_REQUIRE(to && !to->reserved() && to->pool == nullptr);
  unsigned on = 0;
  std::memcpy(&on, value, sizeof(on));
  device.notes().Change(device.memory(), to->allocation,
                        [on](session::AllocationNote& note) { note.sync_memops = on != 0; });
  return CUDA_SUCCESS;
}

// ---- managed memory: hints change nothing where host and device share memory, but are remembered

namespace {

/// The allocation that contains the whole range.
CUresult FindRange(CUdeviceptr pointer, std::size_t bytes, exec::Allocation* allocation) {
  GL_CU_REQUIRE(pointer != 0 && bytes != 0);
  const auto found = ThisContext().device().memory().Find(pointer);
  GL_CU_REQUIRE(found && exec::LiesIn(found->base, found->bytes, pointer, bytes));
  *allocation = *found;
  return CUDA_SUCCESS;
}
CUresult FindManaged(CUdeviceptr pointer, std::size_t bytes, exec::Allocation* allocation) {
  GL_CU_TRY(FindRange(pointer, bytes, allocation));
  GL_CU_REQUIRE(allocation->kind == MemoryKind::kManaged);
  return CUDA_SUCCESS;
}

CUmemLocation LocationOf(CUdevice device) {
  return device == kDeviceCpu ? CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0}
                              : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, device};
}
CUresult CheckLocation(Process& process, const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    return process.FindDevice(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  }
  return location.type >= CU_MEM_LOCATION_TYPE_HOST && location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
/// Device number as the attributes report it: -1 for the host, -2 for nowhere.
int NumberOf(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_INVALID) return kDeviceInvalid;
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : kDeviceCpu;
}

void Advise(CUmem_advise advice, const CUmemLocation& location, session::AllocationNote& note) {
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: note.read_mostly = true; break;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: note.read_mostly = false; break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: note.preferred = location; break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: note.preferred = session::AllocationNote{}.preferred; break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      (location.type == CU_MEM_LOCATION_TYPE_DEVICE ? note.accessed_by_device : note.accessed_by_host) =
          advice == CU_MEM_ADVISE_SET_ACCESSED_BY;
      break;
    default: break;
  }
}

}  // namespace

CUresult cuMemAdvise_v2(Process& process, CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice,
                        CUmemLocation location) {
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, bytes, &allocation));
  const bool located = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                       advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (located) GL_CU_TRY(CheckLocation(process, location));
  GL_CU_REQUIRE(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
  Device& device = ThisContext().device();
  device.notes().Change(device.memory(), allocation,
                        [&](session::AllocationNote& note) { Advise(advice, location, note); });
  return CUDA_SUCCESS;
}
CUresult cuMemAdvise(Process& process, CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(process, pointer, bytes, advice, LocationOf(device));
}

CUresult cuMemPrefetchAsync_v2(Process& process, CUdeviceptr pointer, std::size_t bytes, CUmemLocation location,
                               unsigned flags, CUstream handle) {
  GL_CU_REQUIRE(flags == 0);
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, bytes, &allocation));
  GL_CU_TRY(CheckLocation(process, location));
  Device& device = stream->context().device();
  device.notes().Change(device.memory(), allocation,
                        [&](session::AllocationNote& note) { note.prefetched = location; });
  return session::Submit(*stream, session::EmptyOp{}, session::Waiting::kIfIdle);
}
CUresult cuMemPrefetchAsync(Process& process, CUdeviceptr pointer, std::size_t bytes, CUdevice device,
                            CUstream stream) {
  return cuMemPrefetchAsync_v2(process, pointer, bytes, LocationOf(device), 0, stream);
}

CUresult cuMemPrefetchBatchAsync(Process& process, CUdeviceptr* pointers, std::size_t* bytes, std::size_t count,
                                 CUmemLocation* locations, std::size_t* indices, std::size_t location_count,
                                 std::uint64_t flags, CUstream stream) {
  GL_CU_REQUIRE(pointers != nullptr && bytes != nullptr && count != 0 && locations != nullptr && indices != nullptr &&
                location_count != 0 && flags == 0);
  std::size_t location = 0;
  for (std::size_t i = 0; i < count; ++i) {
    while (location + 1 < location_count && indices[location + 1] <= i) ++location;
    GL_CU_TRY(cuMemPrefetchAsync_v2(process, pointers[i], bytes[i], locations[location], 0, stream));
  }
  return CUDA_SUCCESS;
}
// Discarding allows losing the contents; keeping them is a legal outcome.
CUresult cuMemDiscardBatchAsync(Process& process, CUdeviceptr* pointers, std::size_t* bytes, std::size_t count,
                                std::uint64_t flags, CUstream handle) {
  GL_CU_REQUIRE(pointers != nullptr && bytes != nullptr && count != 0 && flags == 0);
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  for (std::size_t i = 0; i < count; ++i) {
    exec::Allocation allocation;
    GL_CU_TRY(FindManaged(pointers[i], bytes[i], &allocation));
  }
  return session::Submit(*stream, session::EmptyOp{}, session::Waiting::kIfIdle);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(Process& process, CUdeviceptr* pointers, std::size_t* bytes,
                                           std::size_t count, CUmemLocation* locations, std::size_t* indices,
                                           std::size_t location_count, std::uint64_t flags, CUstream stream) {
  return cuMemPrefetchBatchAsync(process, pointers, bytes, count, locations, indices, location_count, flags, stream);
}

CUresult cuMemRangeGetAttribute(Process& process, void* data, std::size_t data_bytes, CUmem_range_attribute attribute,
                                CUdeviceptr pointer, std::size_t bytes) {
  GL_CU_REQUIRE(data != nullptr && data_bytes >= 4 && data_bytes % 4 == 0);
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, bytes, &allocation));
  const session::AllocationNote hints = ThisContext().device().notes().Of(allocation);
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
CUresult cuMemRangeGetAttributes(Process& process, void** data, std::size_t* data_bytes,
                                 CUmem_range_attribute* attributes, std::size_t count, CUdeviceptr pointer,
                                 std::size_t bytes) {
  GL_CU_REQUIRE(data != nullptr && data_bytes != nullptr && attributes != nullptr && count != 0);
  for (std::size_t i = 0; i < count; ++i)
    GL_CU_TRY(cuMemRangeGetAttribute(process, data[i], data_bytes[i], attributes[i], pointer, bytes));
  return CUDA_SUCCESS;
}

namespace {

/// Managed memory lies where it was prefetched to last. Other memory, and what never was, lies at the host as far as it
/// was touched.
CUresult Locate(std::uintptr_t begin, std::uintptr_t end, std::size_t sampling, const CUmemLocation& prefetched,
                CUmemLocation* to) {
  const auto resident = session::IsMostlyResident(begin, end, sampling);
  GL_CU_REQUIRE(resident);
  if (prefetched.type != CU_MEM_LOCATION_TYPE_NONE) *to = prefetched;
  else *to = {*resident ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_NONE, 0};
  return CUDA_SUCCESS;
}

/// Where the range was prefetched to. Managed memory, or memory that is nothing of CUDA's.
CUresult FindPrefetched(CUdeviceptr pointer, std::size_t bytes, CUmemLocation* prefetched) {
  Device& device = ThisContext().device();
  *prefetched = {CU_MEM_LOCATION_TYPE_NONE, 0};
  if (!device.memory().Find(pointer)) return CUDA_SUCCESS;
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, bytes, &allocation));
  *prefetched = device.notes().Of(allocation).prefetched;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetLocationInfo(Process& process, CUdeviceptr pointer, std::size_t bytes, std::size_t summary_granularity,
                              std::size_t sampling_granularity, CUmemLocation* location_out) {
  constexpr std::size_t kSampling = 64 << 10;  // where the program leaves it to the driver
  GL_CU_REQUIRE(pointer != 0 && location_out != nullptr && summary_granularity != 0 && summary_granularity <= bytes);
  GL_CU_REQUIRE(sampling_granularity <= summary_granularity && bytes <= ~pointer);
  const std::size_t sampling = sampling_granularity != 0 ? sampling_granularity : kSampling;
  CUmemLocation prefetched;
  GL_CU_TRY(FindPrefetched(pointer, bytes, &prefetched));
  for (std::size_t at = 0, region = 0; at < bytes; ++region) {
    const std::size_t size = std::min(summary_granularity, bytes - at);
    GL_CU_TRY(Locate(pointer + at, pointer + at + size, sampling, prefetched, &location_out[region]));
    at += size;
  }
  return CUDA_SUCCESS;
}

// A length of 0 means the whole allocation, and nothing less can be meant.
CUresult cuStreamAttachMemAsync(Process& process, CUstream handle, CUdeviceptr pointer, std::size_t bytes,
                                unsigned flags) {
  GL_CU_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  exec::Allocation allocation;
  GL_CU_TRY(FindManaged(pointer, std::max<std::size_t>(bytes, 1), &allocation));
  return session::Submit(*stream, session::EmptyOp{}, session::Waiting::kIfIdle);
}

}  // namespace gridloom::hooks
