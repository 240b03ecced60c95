#include "sim/hardware/hazards/sector_order.h"

namespace gridloom::hardware::hazards {

using timing::kNoWork;
using timing::WorkId;

void SectorOrder::Clear() {
  pages_.clear();
  last_number_ = ~std::uint64_t{0};
  last_page_ = nullptr;
}

/// Null: nobody who was early has touched it.
SectorOrder::Page* SectorOrder::PageOf(std::uint64_t number, bool make) {
  if (number == last_number_ && (last_page_ != nullptr || !make)) return last_page_;
  last_number_ = number;
  if (make) {
    auto& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    return last_page_ = page.get();
  }
  const auto page = pages_.find(number);
  return last_page_ = page == pages_.end() ? nullptr : page->second.get();
}

std::optional<WorkId> SectorOrder::Behind(WorkId work, const Works& works, std::size_t place) const {
  const WorkId last = works.last[place];
  if (last == kNoWork) return std::nullopt;
  if (clocks_.Precedes(work, last)) return last;
  if (!works.more[place]) return std::nullopt;
  for (const WorkId other : works.others.at(place)) {
    if (clocks_.Precedes(work, other)) return other;
  }
  return std::nullopt;
}

void SectorOrder::Keep(WorkId work, Works& works, std::size_t place) const {
  // Of those that come before it, and those that are no longer early, nothing needs to be known any more.
  const auto done = [&](WorkId other) { return other == work || !clocks_.IsEarly(other) || clocks_.Precedes(other, work); };
  WorkId& last = works.last[place];
  if (last == work) return;
  if (last == kNoWork || done(last)) {
    last = work;
    return;
  }
  if (clocks_.Precedes(work, last)) return;
  std::vector<WorkId>& others = works.others[place];
  std::erase_if(others, done);
  others.push_back(work);
  works.more[place] = true;
}

}  // namespace gridloom::hardware::hazards
