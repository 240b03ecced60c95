#include "sim/exec/runtime/parameter_buffers.h"

#include <mutex>

namespace gridloom::exec {

std::uint64_t ParameterBuffers::Make(const Buffer& buffer, std::uint64_t align) {
  const std::uint64_t address = heap_.Allocate(buffer.bytes, align);
  if (address == 0) return 0;
  const std::lock_guard lock(mutex_);
  buffers_.emplace(address, buffer);
  count_.store(buffers_.size(), std::memory_order_relaxed);
  return address;
}

std::optional<ParameterBuffers::Buffer> ParameterBuffers::Find(std::uint64_t address, std::uint64_t owner) const {
  const std::lock_guard lock(mutex_);
  const auto it = buffers_.find(address);
  if (it == buffers_.end() || it->second.owner != owner) return std::nullopt;
  return it->second;
}

void ParameterBuffers::Free(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (buffers_.erase(address) != 0) heap_.Free(address);
  count_.store(buffers_.size(), std::memory_order_relaxed);
}

void ParameterBuffers::Drop(std::uint64_t owner) {
  if (count_.load(std::memory_order_relaxed) == 0) return;  // of this launch there is none: it made them before
  const std::lock_guard lock(mutex_);
  for (auto it = buffers_.begin(); it != buffers_.end();) {
    if (it->second.owner != owner) {
      ++it;
      continue;
    }
    heap_.Free(it->first);
    it = buffers_.erase(it);
  }
  count_.store(buffers_.size(), std::memory_order_relaxed);
}

}  // namespace gridloom::exec
