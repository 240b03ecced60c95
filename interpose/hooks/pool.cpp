// Stream-ordered allocation and memory pools.
#include "interpose/hooks/pool.h"

#include "hooks/support.h"
#include "interpose/launch/capture.h"
#include "interpose/launch/submit.h"
#include "interpose/objects/free.h"
#include "interpose/objects/operation.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"

namespace gridloom::hooks {

using session::MemoryPool;

namespace {

CUresult FindPool(Process& process, CUmemoryPool handle, std::shared_ptr<MemoryPool>* pool) {
  *pool = process.handles.pools.Find(handle);
  GL_CU_REQUIRE(*pool != nullptr);
  return CUDA_SUCCESS;
}

/// From the pool, or where there is none from the one that the stream's device uses.
CUresult AllocateFrom(Process& process, std::shared_ptr<MemoryPool> pool, CUdeviceptr* pointer, std::size_t bytes,
                      CUstream handle) {
  session::StreamPtr stream;
  GL_CU_TRY(FindOwnedStream(process, handle, &stream));
  GL_CU_REQUIRE(pointer != nullptr);
  {
    const std::lock_guard lock(session::CaptureMutex());
    if (stream->capture != nullptr) return session::CaptureAllocation(*stream, bytes, pointer);
  }
  if (bytes == 0) {  // no error here, unlike cuMemAlloc
    *pointer = 0;
    return CUDA_SUCCESS;
  }
  if (pool == nullptr) pool = stream->context().device().current_pool();
  std::uint64_t address = pool->Allocate(bytes);
  if (address == 0) {
    stream->context().WaitAll();  // frees on their way
    address = pool->Allocate(bytes);
  }
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  process.observers().memcheck().NoteStreamAllocation(*stream, stream->context().device().memory(), address);
  *pointer = address;
  // The memory is there at once. As a work of the legacy stream the allocation still stands between those of blocking
  // streams.
  if (stream->kind() != session::Stream::Kind::kLegacy) return CUDA_SUCCESS;
  return session::Submit(*stream, session::EmptyOp{}, session::Waiting::kIfIdle);
}

/// The device that a pool at that place belongs to: pools of host memory belong to the first one, which reaches all of
/// it.
CUresult DeviceOf(Process& process, const CUmemLocation& location, Device** device) {
  return FindDevice(process, location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : 0, device);
}

/// What the allocations of a pool of that type and place are. Only managed memory may be nowhere in particular.
CUresult KindOf(CUmemAllocationType type, const CUmemLocation& location, exec::MemoryKind* kind) {
  GL_CU_REQUIRE(location.type >= CU_MEM_LOCATION_TYPE_NONE && location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
    *kind = exec::MemoryKind::kManaged;
    return CUDA_SUCCESS;
  }
  GL_CU_REQUIRE(type == CU_MEM_ALLOCATION_TYPE_PINNED && location.type != CU_MEM_LOCATION_TYPE_NONE);
  *kind = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? exec::MemoryKind::kPool : exec::MemoryKind::kPinned;
  return CUDA_SUCCESS;
}

CUresult FindPlace(Process& process, const CUmemLocation* location, CUmemAllocationType type, Device** device,
                   exec::MemoryKind* kind) {
  GL_CU_REQUIRE(location != nullptr);
  GL_CU_TRY(KindOf(type, *location, kind));
  return DeviceOf(process, *location, device);
}

}  // namespace

CUmemoryPool Publish(Process& process, const std::shared_ptr<MemoryPool>& pool) {
  if (process.handles.pools.Find(pool->handle()) == nullptr) process.handles.pools.Add(pool);
  return pool->handle();
}

CUresult cuMemAllocAsync(Process& process, CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return AllocateFrom(process, nullptr, pointer, bytes, stream);
}

CUresult cuMemAllocFromPoolAsync(Process& process, CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool handle,
                                 CUstream stream) {
  std::shared_ptr<MemoryPool> pool;
  GL_CU_TRY(FindPool(process, handle, &pool));
  return AllocateFrom(process, std::move(pool), pointer, bytes, stream);
}

CUresult cuMemFreeAsync(Process& process, CUdeviceptr pointer, CUstream handle) {
  session::StreamPtr stream;
  GL_CU_TRY(FindOwnedStream(process, handle, &stream));
  if (pointer == 0) return CUDA_SUCCESS;
  const auto refuse = [&](CUresult status) {
    process.observers().memcheck().BadFree("cuMemFreeAsync", stream->context(), pointer);
    return status;
  };
  bool captured = false;
  GL_CU_TRY(session::CaptureFree(*stream, pointer, &captured));
  if (captured) return CUDA_SUCCESS;
  session::FreeOp op;
  if (const CUresult known = session::BeginFree(pointer, &op); known != CUDA_ERROR_NOT_FOUND) {
    if (known != CUDA_SUCCESS) return refuse(known);
    const CUresult status = session::Submit(*stream, op, session::Waiting::kIfIdle);
    if (status != CUDA_SUCCESS) session::CancelFree(op);
    return status;
  }
  // Memory of cuMemAlloc may be freed in stream order too.
  const auto allocation = stream->context().device().memory().Find(pointer);
  if (!allocation || allocation->base != pointer || allocation->kind != exec::MemoryKind::kDevice)
    return refuse(CUDA_ERROR_INVALID_VALUE);
  return session::CurrentContext() != nullptr ? hooks::cuMemFree_v2(process, pointer) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemPoolCreate(Process& process, CUmemoryPool* handle, const CUmemPoolProps* props) {
  GL_CU_REQUIRE(handle != nullptr && props != nullptr);
  if (props->handle_types != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;  // sharing with other processes
  Device* device = nullptr;
  exec::MemoryKind kind{};
  GL_CU_TRY(FindPlace(process, &props->location, props->alloc_type, &device, &kind));
  if (device->backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  *handle =
      process.handles.pools.Add(std::make_shared<MemoryPool>(*device, kind, props->max_size, props->location.type));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(Process& process, CUmemoryPool handle) {
  std::shared_ptr<MemoryPool> pool;
  GL_CU_TRY(FindPool(process, handle, &pool));
  GL_CU_REQUIRE(pool != pool->device().default_pool(pool->kind()));
  process.handles.pools.Remove(handle);
  pool->device().ForgetPool(*pool);
  pool->Close();
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(Process& process, CUmemoryPool handle, std::size_t keep) {
  std::shared_ptr<MemoryPool> pool;
  GL_CU_TRY(FindPool(process, handle, &pool));
  pool->Trim(keep);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAttribute(Process& process, CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  std::shared_ptr<MemoryPool> pool;
  GL_CU_REQUIRE(value != nullptr);
  GL_CU_TRY(FindPool(process, handle, &pool));
  return pool->SetAttribute(attribute, value);
}
CUresult cuMemPoolGetAttribute(Process& process, CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  std::shared_ptr<MemoryPool> pool;
  GL_CU_REQUIRE(value != nullptr);
  GL_CU_TRY(FindPool(process, handle, &pool));
  return pool->GetAttribute(attribute, value);
}
// There is one device; the host never reaches a device's own memory.
CUresult cuMemPoolSetAccess(Process& process, CUmemoryPool handle, const CUmemAccessDesc* map, std::size_t count) {
  std::shared_ptr<MemoryPool> pool;
  GL_CU_TRY(FindPool(process, handle, &pool));
  for (std::size_t i = 0; i < count; ++i) {
    const bool of_host = map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    if (of_host && pool->kind() == exec::MemoryKind::kPool) return CUDA_ERROR_NOT_SUPPORTED;
    Device* device = nullptr;
    GL_CU_TRY(DeviceOf(process, map[i].location, &device));
    GL_CU_REQUIRE(map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (of_host) pool->GiveHostAccess();
    else pool->GiveDeviceAccess();
  }
  return CUDA_SUCCESS;
}
CUresult cuMemPoolGetAccess(Process& process, CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  std::shared_ptr<MemoryPool> pool;
  Device* device = nullptr;
  GL_CU_REQUIRE(flags != nullptr);
  GL_CU_TRY(FindPool(process, handle, &pool));
  GL_CU_REQUIRE(location != nullptr);
  const bool of_host = location->type != CU_MEM_LOCATION_TYPE_DEVICE;
  GL_CU_TRY(DeviceOf(process, *location, &device));
  const bool allowed = of_host ? pool->host_access() : pool->device_access();
  *flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(Process& process, CUmemoryPool* handle, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(handle != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  *handle = Publish(process, device->default_pool());
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetMemPool(Process& process, CUmemoryPool* handle, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(handle != nullptr);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  *handle = Publish(process, device->current_pool());
  return CUDA_SUCCESS;
}
CUresult cuDeviceSetMemPool(Process& process, CUdevice ordinal, CUmemoryPool handle) {
  Device* device = nullptr;
  std::shared_ptr<MemoryPool> pool;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  GL_CU_TRY(FindPool(process, handle, &pool));
  GL_CU_REQUIRE(pool->kind() == exec::MemoryKind::kPool);
  device->set_current_pool(std::move(pool));
  return CUDA_SUCCESS;
}
CUresult cuMemGetDefaultMemPool(Process& process, CUmemoryPool* handle, CUmemLocation* location,
                                CUmemAllocationType type) {
  Device* device = nullptr;
  exec::MemoryKind kind{};
  GL_CU_REQUIRE(handle != nullptr);
  GL_CU_TRY(FindPlace(process, location, type, &device, &kind));
  if (device->backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  *handle = Publish(process, device->default_pool(kind));
  return CUDA_SUCCESS;
}
CUresult cuMemGetMemPool(Process& process, CUmemoryPool* handle, CUmemLocation* location, CUmemAllocationType type) {
  Device* device = nullptr;
  exec::MemoryKind kind{};
  GL_CU_REQUIRE(handle != nullptr);
  GL_CU_TRY(FindPlace(process, location, type, &device, &kind));
  if (device->backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  *handle = Publish(process, device->current_pool(kind));
  return CUDA_SUCCESS;
}
CUresult cuMemSetMemPool(Process& process, CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  Device* device = nullptr;
  exec::MemoryKind kind{};
  std::shared_ptr<MemoryPool> pool;
  GL_CU_TRY(FindPlace(process, location, type, &device, &kind));
  GL_CU_TRY(FindPool(process, handle, &pool));
  GL_CU_REQUIRE(pool->kind() == kind);
  device->set_current_pool(std::move(pool));
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
