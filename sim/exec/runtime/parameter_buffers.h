// Device memory into which a kernel writes the parameters of a grid it is about to launch. A buffer belongs to the grid
// that asked for it: it goes when it is launched, or with that grid. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "sim/exec/engine.h"
#include "sim/exec/runtime/device_heap.h"
#include "sim/exec/runtime/fork_guard.h"

namespace gridloom::exec {

class ParameterBuffers {
 public:
  /// What the call that made the buffer said; kernel and shape only where it said them (GetParameterBufferV2).
  struct Buffer {
    std::uint64_t owner = 0;  ///< serial number of the launch
    std::uint64_t bytes = 0;
    const KernelInfo* kernel = nullptr;
    Dim3 grid{}, block{};
    std::uint32_t dynamic_shared_bytes = 0;
  };

  explicit ParameterBuffers(DeviceMemory& memory) : heap_(memory, kHeapBytes) {}

  /// The new buffer's address; 0 when there is no memory.
  std::uint64_t Make(const Buffer& buffer, std::uint64_t align);
  /// The buffer of that launch at that address. It stays until Free.
  std::optional<Buffer> Find(std::uint64_t address, std::uint64_t owner) const;
  void Free(std::uint64_t address);
  /// The memory block that begins last at or before the address, when that lies among the buffers (memcheck).
  std::optional<DeviceHeap::Block> BlockBefore(std::uint64_t address) const {
    return heap_.Contains(address) ? heap_.FindBefore(address) : std::nullopt;
  }
  /// Forgets all buffers of a launch that is over.
  void Drop(std::uint64_t owner);

 private:
  // Address space; memory is used only as far as buffers reach.
  static constexpr std::uint64_t kHeapBytes = std::uint64_t{256} << 20;

  DeviceHeap heap_;
  mutable ForkSafeMutex mutex_;
  std::unordered_map<std::uint64_t, Buffer> buffers_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace gridloom::exec
