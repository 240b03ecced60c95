#include "sim/exec/runtime/device_heap.h"

#include <algorithm>
#include <mutex>

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
  const std::uint64_t gap = checked_ ? kHeapAlign : 0;
  const std::uint64_t taken = RoundUp(std::max<std::uint64_t>(bytes, 1), kHeapAlign) + gap;
  std::uint64_t address = free_.Take(taken, std::max(align, kHeapAlign));
  while (address == 0 && !freed_.empty()) {
    GiveBackOldest();
    address = free_.Take(taken, std::max(align, kHeapAlign));
  }
  if (address != 0) blocks_.emplace(address, Taken{bytes, taken, false});
  return address;
}

bool DeviceHeap::Free(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto it = blocks_.find(address);
  if (it == blocks_.end() || it->second.freed) return false;
  if (checked_) {
    it->second.freed = true;
    freed_.push_back(address);
  } else {
    free_.Give(address, it->second.taken);
    blocks_.erase(it);
  }
  return true;
}

void DeviceHeap::GiveBackOldest() {
  const auto it = blocks_.find(freed_.front());
  freed_.pop_front();
  free_.Give(it->first, it->second.taken);
  blocks_.erase(it);
}

bool DeviceHeap::Contains(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  return base_ != 0 && address - base_ < bytes_;
}

void DeviceHeap::CountLive(std::uint64_t* blocks, std::uint64_t* bytes) const {
  const std::lock_guard lock(mutex_);
  *blocks = *bytes = 0;
  for (const auto& [base, block] : blocks_) {
    if (block.freed) continue;
    ++*blocks;
    *bytes += block.bytes;
  }
}

std::optional<DeviceHeap::Block> DeviceHeap::FindBefore(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return std::nullopt;
  --it;
  return Block{it->first, it->second.bytes, it->second.freed};
}

}  // namespace gridloom::exec
