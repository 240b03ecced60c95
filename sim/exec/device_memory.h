// Device memory of the virtual GPU: one reserved host address range per process. Device pointers are host addresses in
// it, so a kernel's window check is one compare and a copy is a memcpy. Allocations stand apart by guard gaps that are
// never mapped. Everything a kernel may touch is inside the range (global, shared, local, pinned and managed memory) or
// is host memory registered with RegisterHost. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::exec {

enum class MemoryKind : std::uint8_t {
  kDevice,      ///< cuMemAlloc
  kPool,        ///< cuMemAllocAsync: a block of a pool
  kManaged,     ///< cuMemAllocManaged, __managed__
  kPinned,      ///< cuMemHostAlloc
  kRegistered,  ///< cuMemHostRegister: ordinary host memory outside the range
  kReserved,    ///< address range reserved by cuMemAddressReserve, not accessible until mapped
  kModule,      ///< variables of a loaded module
  kInternal,    ///< shared windows, local memory, device heap
};

/// Whom memory belongs to: a context, a loaded program. Who has an allocation asks what its owner is, and never assumes
/// it.
class AllocationOwner {
 public:
  virtual ~AllocationOwner() = default;
};

struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;  ///< as requested
  MemoryKind kind = MemoryKind::kDevice;
  std::uint64_t id = 0;              ///< unique, never reused (CU_POINTER_ATTRIBUTE_BUFFER_ID)
  AllocationOwner* owner = nullptr;  ///< null: nobody in particular

  /// The owner if it is a T, else null.
  template <typename T>
  T* OwnerAs() const {
    return dynamic_cast<T*>(owner);
  }
};

class DeviceMemory {
 public:
  struct Options {
    std::uint64_t range_bytes = std::uint64_t{1} << 40;  ///< address space to reserve, not memory
    std::uint64_t limit_bytes = 0;                       ///< what kDevice + kManaged + kModule may use together
    /// Told before more is used (kDevice + kManaged + kModule + physical memory, in all) and after less is; may refuse
    /// more. Runs under the memory's lock: it must not come back to it.
    std::function<bool(std::uint64_t used)> quota = nullptr;
    /// Size of the device's pages, a power of two; 0: of the host's. See LetThrough.
    std::uint64_t device_page_bytes = 0;
    bool remember_freed = false;  ///< keep freed ranges out of use for long and know them (memcheck)
  };
  static Result<std::unique_ptr<DeviceMemory>> Create(const Options& options);
  virtual ~DeviceMemory() = default;

  virtual std::uint64_t range_base() const = 0;
  virtual std::uint64_t range_bytes() const = 0;
  /// Bytes from range_base() up to the end of the highest allocation so far, never shrinking: the launch window.
  virtual std::uint64_t high_water_bytes() const = 0;

  /// Zero when the limit or the range is exhausted. `align` is a power of two; at least 256 is used. Memory is zeroed
  /// pages.
  virtual std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t align, MemoryKind kind,
                                 AllocationOwner* owner = nullptr) = 0;
  /// False when `base` is not the start of a live allocation.
  virtual bool Free(std::uint64_t base) = 0;

  /// Virtual memory management (cuMemAddressReserve / cuMemCreate / cuMemMap): a reserved range without memory, and
  /// physical memory (a memfd offset range) that can be mapped into reservations, more than once. Memory at the host
  /// counts against no limit of the device's; there is no more of it than the machine has.
  virtual std::uint64_t Reserve(std::uint64_t bytes, std::uint64_t align, std::uint64_t hint) = 0;
  virtual bool Release(std::uint64_t base, std::uint64_t bytes) = 0;
  virtual std::uint64_t CreatePhysical(std::uint64_t bytes, bool at_host = false) = 0;  ///< handle, 0 on failure
  /// Bytes of all physical memory that is there: of handles, and what is mapped though its handle was destroyed.
  virtual std::vector<std::uint64_t> ListPhysical() const = 0;
  virtual bool DestroyPhysical(std::uint64_t handle) = 0;  ///< memory goes when unmapped everywhere
  /// A new file descriptor for physical memory, for other processes; -1 on failure.
  virtual int ExportPhysical(std::uint64_t handle) const = 0;
  /// Physical memory that a descriptor of ExportPhysical stands for, which stays the caller's, its bytes and where it
  /// is; 0 on failure. What is no such memory is refused.
  virtual std::uint64_t ImportPhysical(int descriptor, std::uint64_t* bytes, bool* at_host) = 0;
  virtual bool Map(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle, std::uint64_t offset) = 0;
  virtual bool Unmap(std::uint64_t address, std::uint64_t bytes) = 0;
  virtual bool Protect(std::uint64_t address, std::uint64_t bytes, bool readable, bool writable) = 0;

  virtual bool RegisterHost(void* host, std::uint64_t bytes, bool read_only, AllocationOwner* owner = nullptr) = 0;
  virtual bool UnregisterHost(void* host) = 0;

  /// The allocation or registration that contains `address`.
  virtual std::optional<Allocation> Find(std::uint64_t address) const = 0;
  /// The allocation nearest to `address` and how far outside of it the address lies (0 = inside), for messages.
  struct Nearest {
    Allocation allocation;
    std::int64_t distance = 0;  ///< bytes past the end (positive) or before the start (negative)
  };
  virtual std::optional<Nearest> FindNearest(std::uint64_t address) const = 0;
  /// The allocation that `address` lay in before it was freed, as long as the range has not been handed out again. Only
  /// with Options::remember_freed.
  virtual std::optional<Allocation> FindFreed(std::uint64_t address) const = 0;
  /// Live allocations, oldest first.
  virtual std::vector<Allocation> List() const = 0;
  virtual bool remembers_freed() const = 0;
  /// True when [address, address + bytes) may be read (written) by a kernel: one live allocation, or registered memory.
  virtual bool Accessible(std::uint64_t address, std::uint64_t bytes, bool write) const = 0;

  /// A kernel touched `address`, which lies in no allocation. A GPU maps whole pages and places allocations side by
  /// side, so it notices only what is outside of all of them. True when the address is in the device page of an
  /// allocation of the program's, or in the page before one: then the memory around it, up to the end of the page, can
  /// be used until it is allocated. Always false without device_page_bytes. For the handler of the fault; calls nothing
  /// that the interrupted code may be in the middle of.
  virtual bool LetThrough(std::uint64_t address) = 0;

  /// Large allocations have large pages, which is waste where a program touches a few bytes here and there. Looks now
  /// and then at how those are used of which that is not known yet. For those who run kernels, between CTAs.
  /// Thread-safe.
  void LookAtPages() {
    if (unknown_page_uses_.load(std::memory_order_relaxed) != 0) LookAtPageUses();
  }

  /// Whether kGuardZone bytes before and behind the range are reserved and never mapped (contract/guard_zone.h).
  bool has_guard_zones() const { return has_guard_zones_; }

  virtual std::uint64_t limit_bytes() const = 0;
  virtual std::uint64_t used_bytes() const = 0;

 protected:
  virtual void LookAtPageUses() = 0;

  std::atomic<std::size_t> unknown_page_uses_{0};  ///< allocations
  bool has_guard_zones_ = false;
};

}  // namespace gridloom::exec
