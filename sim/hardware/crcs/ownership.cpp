#include "sim/hardware/crcs/ownership.h"

namespace gridloom::hardware::crcs {

using timing::Cycle;
using timing::WorkId;

Ownership::Counted Ownership::CountedOf(const PageEntry& entry) const {
  Counted counted{.available = entry.available};
  if (!entry.available || entry.users.empty()) return counted;
  const WorkId owner = entry.users.front().turn.work;
  if (works_.at(owner).role == Role::kKernel) counted.owner = owner;
  return counted;
}

void Ownership::Count(Cycle at, const Counted& before, const Counted& after) {
  if (before.available != after.available) shares_.Available(at, after.available ? 1 : -1);
  if (before.owner == after.owner) return;
  if (before.owner != timing::kNoWork) shares_.Own(at, before.owner, -1);
  if (after.owner != timing::kNoWork) shares_.Own(at, after.owner, 1);
}

/// The page has a new first user.
void Ownership::Own(Cycle at, PageEntry& entry) {
  if (!entry.users.empty() && entry.users.front().fills) entry.available = false;
  else if (!settings_.needs_data) entry.available = true;
  entry.visible = at + settings_.notify;
}

void Ownership::Tell(Cycle at, std::uint64_t page, const PageEntry& entry) {
  if (entry.users.empty()) return;
  const WorkId owner = entry.users.front().turn.work;
  if (works_.at(owner).role == Role::kKernel) events_.OnKernelOwns(at, owner, page, entry);
  else events_.OnCopyOwns(at, owner, page);
}

void Ownership::Enter(Cycle at, WorkId work, std::uint64_t page) {
  const Known& known = works_.at(work);
  PageEntry& entry = known.table->At(page);
  const Counted before = CountedOf(entry);
  ++uses_;
  const bool owns = PageTable::Enter(entry, {.turn = {at, work}, .fills = known.role == Role::kCopyToDevice});
  if (owns) Own(at, entry);
  Count(at, before, CountedOf(entry));
  if (owns) Tell(at, page, entry);
}

void Ownership::Leave(Cycle at, WorkId work, std::uint64_t page, bool data) {
  PageEntry& entry = works_.at(work).table->At(page);
  const Counted before = CountedOf(entry);
  const PageUser first = entry.users.empty() ? PageUser() : entry.users.front();
  ended_ += entry.Has(work);
  if (!PageTable::Leave(entry, work)) return Count(at, before, CountedOf(entry));
  entry.available = entry.available || data;
  Own(at, entry);
  ++passed_;
  Count(at, before, CountedOf(entry));
  if (first.fills) {
    // What SMs have known for a window is not asked for again.
    std::erase_if(entry.filled,
                  [&](const PageEntry::Filled& filled) { return filled.visible + settings_.after <= at; });
    entry.filled.push_back({.by = first.turn, .visible = entry.visible});
    events_.OnReady(entry.visible);
  }
  Tell(at, page, entry);
}

bool Ownership::Owns(WorkId work, std::uint64_t page) const {
  const PageEntry* entry = works_.at(work).table->Find(page);
  return entry != nullptr && entry->OwnedBy(work);
}

}  // namespace gridloom::hardware::crcs
