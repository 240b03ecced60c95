// Memory for malloc and free in kernels. Blocks live until they are freed, across launches. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "sim/exec/device_memory.h"
#include "sim/exec/runtime/address_space.h"
#include "sim/exec/runtime/fork_guard.h"

namespace gridloom::exec {

class DeviceHeap {
 public:
  /// `checked` (memcheck): blocks stand apart, and freed ones are not handed out again while there is other memory.
  DeviceHeap(DeviceMemory& memory, std::uint64_t bytes, bool checked = false)
      : memory_(memory), checked_(checked), bytes_(bytes) {}
  ~DeviceHeap();

  std::uint64_t bytes() const;
  /// The first use fixes the size, as on a device. Later changes are kept and do nothing.
  void set_bytes(std::uint64_t bytes);

  /// At least 16-byte aligned; 0 when the heap is full. `align`: a power of two.
  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t align = 16);
  bool Free(std::uint64_t address);

  struct Block {
    std::uint64_t base = 0, bytes = 0;  ///< as asked for
    bool freed = false;
  };
  /// How many blocks live, and their bytes.
  void CountLive(std::uint64_t* blocks, std::uint64_t* bytes) const;
  bool Contains(std::uint64_t address) const;
  /// The block, live or (with `checked`) freed, that begins last at or before `address`.
  std::optional<Block> FindBefore(std::uint64_t address) const;

 private:
  struct Taken {
    std::uint64_t bytes = 0, taken = 0;
    bool freed = false;
  };
  void GiveBackOldest();

  DeviceMemory& memory_;
  const bool checked_;
  mutable ForkSafeMutex mutex_;
  std::uint64_t bytes_;
  std::uint64_t base_ = 0;
  ExtentMap free_;
  std::map<std::uint64_t, Taken> blocks_;  // by address
  std::deque<std::uint64_t> freed_;        // checked: the oldest first
};

}  // namespace gridloom::exec
