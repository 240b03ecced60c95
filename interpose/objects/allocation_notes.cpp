#include "interpose/objects/allocation_notes.h"

#include <algorithm>

namespace gridloom::session {

AllocationNote AllocationNotes::Of(const exec::Allocation& allocation) const {
  if (!any_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(allocation.id);
  return found == entries_.end() ? AllocationNote{} : found->second.note;
}

void AllocationNotes::Change(const exec::DeviceMemory& memory, const exec::Allocation& allocation,
                             const std::function<void(AllocationNote&)>& change) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= drop_at_) DropFreed(memory);
  Entry& entry = entries_[allocation.id];
  entry.base = allocation.base;
  change(entry.note);
  any_.store(true, std::memory_order_release);
}

void AllocationNotes::DropFreed(const exec::DeviceMemory& memory) {
  std::erase_if(entries_, [&](const auto& entry) {
    const auto live = memory.Find(entry.second.base);
    return !live || live->id != entry.first;
  });
  drop_at_ = std::max<std::size_t>(64, 2 * entries_.size());
}

}  // namespace gridloom::session
