// What a program has said of its memory, and what changes nothing but the answers to its questions, or how long a call
// waits: hints about managed memory, and that memory operations on a range are to be synchronous. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "interpose/api/cuda_types.h"
#include "sim/exec/device_memory.h"

namespace gridloom::session {

struct AllocationNote {
  bool sync_memops = false;
  bool read_mostly = false;
  cuda::CUmemLocation preferred{cuda::CU_MEM_LOCATION_TYPE_INVALID, cuda::kDeviceInvalid};
  cuda::CUmemLocation prefetched{cuda::CU_MEM_LOCATION_TYPE_INVALID, cuda::kDeviceInvalid};
  bool accessed_by_device = false, accessed_by_host = false;
};

class AllocationNotes {
 public:
  /// The note of the allocation; one that says nothing when there is none.
  AllocationNote Of(const exec::Allocation& allocation) const;
  /// Calls `change` with the note of the allocation. Notes of memory that was freed since go: `memory` is asked what
  /// lives.
  void Change(const exec::DeviceMemory& memory, const exec::Allocation& allocation,
              const std::function<void(AllocationNote&)>& change);

 private:
  struct Entry {
    std::uint64_t base = 0;
    AllocationNote note;
  };
  void DropFreed(const exec::DeviceMemory& memory);

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Entry> entries_;  ///< by allocation id, which is never used again
  std::size_t drop_at_ = 64;                          ///< so many entries are looked through for freed memory
  std::atomic<bool> any_{false};                      ///< what Of looks at without the mutex
};

}  // namespace gridloom::session
