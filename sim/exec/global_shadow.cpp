#include "sim/exec/global_shadow.h"

#include <algorithm>
#include <bit>

namespace gridloom::exec {

WrittenBytes::WrittenBytes(std::uint64_t bytes)
    : words_(std::make_unique<std::atomic<std::uint64_t>[]>(bytes / 64 + 1)) {}

void WrittenBytes::Set(std::uint64_t offset, std::uint64_t bytes, bool written) {
  for (const std::uint64_t end = offset + bytes; offset < end;) {
    const std::uint64_t first = offset % 64, count = std::min(64 - first, end - offset);
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - count) << first;
    auto& word = words_[offset / 64];
    if (!written) word.fetch_and(~mask, std::memory_order_relaxed);
    else if ((word.load(std::memory_order_relaxed) & mask) != mask) word.fetch_or(mask, std::memory_order_relaxed);
    offset += count;
  }
}

std::optional<std::uint64_t> WrittenBytes::FirstUnwritten(std::uint64_t offset, std::uint64_t bytes) const {
  for (const std::uint64_t end = offset + bytes; offset < end;) {
    const std::uint64_t first = offset % 64, count = std::min(64 - first, end - offset);
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - count) << first;
    const std::uint64_t missing = ~words_[offset / 64].load(std::memory_order_relaxed) & mask;
    if (missing != 0) return offset - first + static_cast<std::uint64_t>(std::countr_zero(missing));
    offset += count;
  }
  return std::nullopt;
}

std::shared_ptr<WrittenBytes> GlobalShadow::Of(const DeviceMemory& memory, const Allocation& allocation) {
  if (allocation.kind != MemoryKind::kDevice && allocation.kind != MemoryKind::kPool) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = by_base_.find(allocation.base);
  if (found != by_base_.end() && found->second.id == allocation.id) return found->second.bytes;
  if (by_base_.size() >= most_) ForgetFreed();
  Entry& entry = by_base_[allocation.base];
  entry = {&memory, allocation.id, std::make_shared<WrittenBytes>(allocation.bytes)};
  return entry.bytes;
}

void GlobalShadow::ForgetFreed() {
  std::erase_if(by_base_, [](const auto& entry) {
    const auto allocation = entry.second.memory->Find(entry.first);
    return !allocation || allocation->id != entry.second.id;
  });
  most_ = std::max<std::size_t>(64, 2 * by_base_.size());
}

GlobalShadow::Range GlobalShadow::Find(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes) {
  const auto allocation = memory.Find(address);
  if (!allocation) return {};
  const std::uint64_t offset = address - allocation->base;
  return {Of(memory, *allocation), offset, std::min(bytes, allocation->bytes - offset)};
}

void GlobalShadow::Write(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes) {
  if (const Range range = Find(memory, address, bytes); range.bytes) range.bytes->Write(range.offset, range.count);
}

void GlobalShadow::Copy(const DeviceMemory& memory, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  const Range target = Find(memory, to, bytes), source = Find(memory, from, bytes);
  if (!target.bytes) return;
  if (!source.bytes) return target.bytes->Write(target.offset, target.count);
  const std::uint64_t count = std::min(source.count, target.count);
  // Ranges may overlap, as those of memmove.
  const auto move = [&](std::uint64_t at) {
    if (source.bytes->IsWritten(source.offset + at)) target.bytes->Write(target.offset + at, 1);
    else target.bytes->Unwrite(target.offset + at, 1);
  };
  if (!source.bytes->FirstUnwritten(source.offset, count)) return target.bytes->Write(target.offset, count);
  if (to <= from)
    for (std::uint64_t at = 0; at < count; ++at) move(at);
  else
    for (std::uint64_t at = count; at-- > 0;) move(at);
}

std::optional<std::uint64_t> GlobalShadow::FirstUnwritten(const DeviceMemory& memory, std::uint64_t address,
                                                          std::uint64_t bytes) {
  const Range range = Find(memory, address, bytes);
  if (!range.bytes) return std::nullopt;
  const auto first = range.bytes->FirstUnwritten(range.offset, range.count);
  return first ? std::optional(address - range.offset + *first) : std::nullopt;
}

}  // namespace gridloom::exec
