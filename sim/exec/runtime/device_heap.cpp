#include "sim/exec/runtime/device_heap.h"

#include <algorithm>

namespace gridloom::exec {

constexpr std::uint64_t kHeapAlign = 16;

DeviceHeap::~DeviceHeap() {
  if (base_ != 0) memory_.Free(base_);
}

std::uint64_t DeviceHeap::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void DeviceHeap::set_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (base_ == 0) bytes_ = RoundUp(bytes, kPageBytes);
}

std::uint64_t DeviceHeap::Allocate(std::uint64_t bytes, std::uint64_t align) {
  const std::lock_guard lock(mutex_);
  if (base_ == 0) {
    if (bytes_ == 0) return 0;
    base_ = memory_.Allocate(bytes_, kPageBytes, MemoryKind::kInternal);
    if (base_ == 0) return 0;
    free_.Give(base_, RoundUp(bytes_, kHeapAlign) - (bytes_ % kHeapAlign == 0 ? 0 : kHeapAlign));
  }
  if (bytes > bytes_) return 0;
  const std::uint64_t taken = RoundUp(std::max<std::uint64_t>(bytes, 1), kHeapAlign);
  const std::uint64_t address = free_.Take(taken, std::max(align, kHeapAlign));
  if (address != 0) live_.emplace(address, taken);
  return address;
}

bool DeviceHeap::Free(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto it = live_.find(address);
  if (it == live_.end()) return false;
  free_.Give(address, it->second);
  live_.erase(it);
  return true;
}

}  // namespace gridloom::exec
