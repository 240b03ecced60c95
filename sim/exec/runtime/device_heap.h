// Memory for malloc and free in kernels. Blocks live until they are freed, across launches. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "sim/exec/device_memory.h"
#include "sim/exec/runtime/address_space.h"

namespace gridloom::exec {

class DeviceHeap {
 public:
  DeviceHeap(DeviceMemory& memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}
  ~DeviceHeap();

  std::uint64_t bytes() const;
  /// As on the device, the size is fixed by the first use: later changes are kept for nothing.
  void set_bytes(std::uint64_t bytes);

  /// At least 16-byte aligned; 0 when the heap is full. `align`: a power of two.
  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t align = 16);
  bool Free(std::uint64_t address);

 private:
  DeviceMemory& memory_;
  mutable std::mutex mutex_;
  std::uint64_t bytes_;
  std::uint64_t base_ = 0;
  ExtentMap free_;
  std::unordered_map<std::uint64_t, std::uint64_t> live_;   // address -> bytes taken
};

}  // namespace gridloom::exec
