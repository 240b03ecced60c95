// Allocation: device, pitched, managed, pinned, registered.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "hooks/support.h"
#include "interpose/launch/capture.h"
#include "interpose/objects/free.h"
#include "interpose/objects/pool.h"
#include "interpose/observe/broker_link.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"
#include "sim/exec/extent.h"

namespace gridloom::hooks {

using Kind = session::ContextMemory::Kind;

namespace {

CUresult Allocate(Process& process, CUdeviceptr* pointer, std::size_t bytes, exec::MemoryKind memory_kind, Kind kind,
                  unsigned flags, std::size_t align = 512) {
  GL_CU_REQUIRE(pointer != nullptr && bytes != 0);
  GL_CU_TRY(session::RefuseUnsafeCall());
  Context& context = ThisContext();
  std::uint64_t address = context.device().memory().Allocate(bytes, align, memory_kind, &context);
  if (address == 0) {
    // Blocks that pools keep for later come back before memory counts as exhausted.
    context.WaitAll();
    context.device().default_pool()->Trim(0);
    address = context.device().memory().Allocate(bytes, align, memory_kind, &context);
  }
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  context.memory.Add(address, {kind, bytes, flags});
  process.observers().memcheck().NoteAllocation(context.device().memory(), address);
  *pointer = address;
  return CUDA_SUCCESS;
}

/// The context that owns the block, which need not be the current one; null for memory of another owner.
Context* OwnerOf(CUdeviceptr pointer) {
  const auto allocation = ThisContext().device().memory().Find(pointer);
  return allocation ? allocation->OwnerAs<Context>() : nullptr;
}

/// Whether the process has memory at every address of the range.
bool IsMapped(CUdeviceptr address, std::size_t bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = address / page * page;
  // With this flag the call looks at the mappings and does nothing else.
  return msync(reinterpret_cast<void*>(begin), address + bytes - begin, MS_ASYNC) == 0;
}

CUresult Free(Process& process, const char* call, CUdeviceptr pointer, std::initializer_list<Kind> kinds) {
  GL_CU_TRY(session::RefuseUnsafeCall());
  Context* const owner = OwnerOf(pointer);
  const auto refuse = [&] {
    process.observers().memcheck().BadFree(call, ThisContext(), pointer);
    return CUDA_ERROR_INVALID_VALUE;
  };
  if (owner == nullptr || !owner->memory.Find(pointer)) return refuse();
  owner->WaitAll();  // freeing waits for the work that may use the block
  if (!owner->memory.Take(pointer, kinds)) return refuse();
  process.observers().memcheck().NoteFree(owner->device().memory(), pointer);
  return owner->device().memory().Free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuMemGetInfo_v2(Process& process, std::size_t* free, std::size_t* total) {
  const exec::DeviceMemory& memory = ThisContext().device().memory();
  std::uint64_t all = memory.limit_bytes(), left = all - std::min(memory.used_bytes(), all);
  if (const session::BrokerLink* const link = process.observers().broker())
    link->MemoryInfo(memory.used_bytes(), &left, &all);
  Store(free, left);
  Store(total, all);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(Process& process, CUdeviceptr* pointer, std::size_t bytes) {
  return Allocate(process, pointer, bytes, exec::MemoryKind::kDevice, Kind::kDevice, 0);
}

CUresult cuMemAllocPitch_v2(Process& process, CUdeviceptr* pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height, unsigned element) {
  GL_CU_REQUIRE(pitch != nullptr && width != 0 && height != 0 && (element == 4 || element == 8 || element == 16));
  const auto& spec = ThisContext().device().spec();
  const std::size_t step = std::max<std::size_t>(spec.texture.alignment_bytes, 512);
  const exec::Extent row = exec::Extent(width).RoundedUp(step), all = row * height;
  GL_CU_REQUIRE(row <= spec.memory.max_pitch_bytes && all.fits());
  GL_CU_TRY(Allocate(process, pointer, all.value(), exec::MemoryKind::kDevice, Kind::kDevice, 0));
  *pitch = row.value();
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(Process& process, CUdeviceptr* pointer, std::size_t bytes, unsigned flags) {
  GL_CU_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
  GL_CU_TRY(Allocate(process, pointer, bytes, exec::MemoryKind::kManaged, Kind::kManaged, flags));
  if (auto* const timeline = process.observers().timeline()) timeline->ShareMemory();
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(Process& process, CUdeviceptr pointer) {
  if (pointer == 0) return CUDA_SUCCESS;
  GL_CU_TRY(session::RefuseUnsafeCall());
  session::FreeOp op;
  if (const CUresult known = session::BeginFree(pointer, &op); known != CUDA_ERROR_NOT_FOUND) {
    if (known != CUDA_SUCCESS) {
      process.observers().memcheck().BadFree("cuMemFree", ThisContext(), pointer);
      return known;
    }
    ThisContext().WaitAll();
    process.observers().memcheck().NoteFree(ThisContext().device().memory(), pointer);
    session::RunFree(op);
    return CUDA_SUCCESS;
  }
  return Free(process, "cuMemFree", pointer, {Kind::kDevice, Kind::kManaged});
}

CUresult cuMemGetAddressRange_v2(Process& process, CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) {
  const auto allocation = ThisContext().device().memory().Find(pointer);
  if (!allocation) return CUDA_ERROR_NOT_FOUND;
  Store(base, allocation->base);
  Store(bytes, allocation->bytes);
  return CUDA_SUCCESS;
}

// ---- host memory

CUresult cuMemHostAlloc(Process& process, void** pointer, std::size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = kMemHostAllocPortable | kMemHostAllocDeviceMap | kMemHostAllocWriteCombined;
  GL_CU_REQUIRE(pointer != nullptr && (flags & ~kKnown) == 0);
  CUdeviceptr address = 0;
  GL_CU_TRY(
      Allocate(process, &address, bytes, exec::MemoryKind::kPinned, Kind::kPinned, flags | kMemHostAllocDeviceMap));
  *pointer = reinterpret_cast<void*>(address);
  return CUDA_SUCCESS;
}
CUresult cuMemAllocHost_v2(Process& process, void** pointer, std::size_t bytes) {
  return cuMemHostAlloc(process, pointer, bytes, 0);
}
CUresult cuMemAllocHost(Process& process, void** pointer, unsigned bytes) {
  return cuMemHostAlloc(process, pointer, bytes, 0);
}

CUresult cuMemFreeHost(Process& process, void* pointer) {
  GL_CU_REQUIRE(pointer != nullptr);
  return Free(process, "cuMemFreeHost", reinterpret_cast<CUdeviceptr>(pointer), {Kind::kPinned});
}

CUresult cuMemHostGetDevicePointer_v2(Process& process, CUdeviceptr* device_pointer, void* pointer, unsigned flags) {
  GL_CU_REQUIRE(device_pointer != nullptr && flags == 0);
  const auto allocation = ThisContext().device().memory().Find(reinterpret_cast<CUdeviceptr>(pointer));
  GL_CU_REQUIRE(allocation &&
                (allocation->kind == exec::MemoryKind::kPinned || allocation->kind == exec::MemoryKind::kRegistered));
  *device_pointer = reinterpret_cast<CUdeviceptr>(pointer);
  if (auto* const timeline = process.observers().timeline()) timeline->ShareMemory();
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(Process& process, unsigned* flags, void* pointer) {
  GL_CU_REQUIRE(flags != nullptr);
  const auto allocation = ThisContext().device().memory().Find(reinterpret_cast<CUdeviceptr>(pointer));
  const Context* const owner = allocation ? allocation->OwnerAs<Context>() : nullptr;
  const auto block = owner != nullptr ? owner->memory.Find(allocation->base) : std::nullopt;
  GL_CU_REQUIRE(block && (block->kind == Kind::kPinned || block->kind == Kind::kRegistered));
  *flags = block->flags;
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(Process& process, void* pointer, std::size_t bytes, unsigned flags) {
  constexpr unsigned kKnown =
      kMemHostRegisterPortable | kMemHostRegisterDeviceMap | kMemHostRegisterIoMemory | kMemHostRegisterReadOnly;
  GL_CU_REQUIRE(pointer != nullptr && bytes != 0 && (flags & ~kKnown) == 0);
  GL_CU_TRY(session::RefuseUnsafeCall());
  Context& context = ThisContext();
  exec::DeviceMemory& memory = context.device().memory();
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  GL_CU_REQUIRE(exec::IsRange(address, bytes));
  if (memory.Find(address) || memory.Find(address + bytes - 1)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  GL_CU_REQUIRE(IsMapped(address, bytes));
  if (!memory.RegisterHost(pointer, bytes, (flags & kMemHostRegisterReadOnly) != 0, &context)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;  // something in between
  }
  context.memory.Add(address, {Kind::kRegistered, bytes, flags | kMemHostAllocDeviceMap});
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(Process& process, void* pointer) {
  GL_CU_REQUIRE(pointer != nullptr);
  GL_CU_TRY(session::RefuseUnsafeCall());
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  Context* const owner = OwnerOf(address);
  if (owner == nullptr) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  const auto range = owner->device().memory().Find(address);
  GL_CU_REQUIRE(!range || range->kind != exec::MemoryKind::kRegistered || range->base == address);  // inside of one
  owner->WaitAll();
  if (!owner->memory.Take(address, {Kind::kRegistered})) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return owner->device().memory().UnregisterHost(pointer) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

}  // namespace gridloom::hooks
