#include "sim/hardware/hazards/sector_order.h"

#include <algorithm>
#include <iterator>

namespace gridloom::hardware::hazards {

using timing::kNoWork;
using timing::WorkId;

SectorOrder::Works& SectorOrder::Works::operator=(const Works& from) {
  if (this == &from) return *this;
  last = from.last;
  others = from.others != nullptr ? std::make_unique<std::vector<WorkId>>(*from.others) : nullptr;
  return *this;
}

void SectorOrder::Access(WorkId work, std::uint64_t first, std::uint64_t count, bool writes, const Found& found) {
  const One one{.work = work, .writes = writes, .early = clocks_.IsEarly(work), .found = found};
  for (const std::uint64_t end = first + count; first < end;) {
    const std::uint64_t page = first / kSectors, whole_end = end / kSectors;
    if (first % kSectors == 0 && page < whole_end) {
      AccessPages(one, page, whole_end);
      first = whole_end * kSectors;
    } else {
      const std::uint64_t stop = std::min(end, (page + 1) * kSectors);
      AccessPart(one, page, first, stop);
      first = stop;
    }
  }
}

/// Sectors of one page.
void SectorOrder::AccessPart(const One& one, std::uint64_t number, std::uint64_t first, std::uint64_t end) {
  if (Page* const page = PageOf(number, one.early)) {
    for (std::uint64_t sector = first; sector < end; ++sector) Touch(one, (*page)[sector % kSectors], sector, 1);
  } else if (const auto span = SpanAt(number); span != spans_.end() && span->first <= number) {
    Touch(one, span->second.users, first, end - first);
  }
}

void SectorOrder::AccessPages(const One& one, std::uint64_t first, std::uint64_t end) {
  for (const std::uint64_t number : PagesIn(first, end)) {
    AccessSpans(one, first, number);
    AccessPart(one, number, number * kSectors, (number + 1) * kSectors);
    first = number + 1;
  }
  AccessSpans(one, first, end);
}

/// Pages of which none is kept sector by sector.
void SectorOrder::AccessSpans(const One& one, std::uint64_t first, std::uint64_t end) {
  if (first == end) return;
  if (one.early) {
    SplitAt(first);
    SplitAt(end);
  }
  auto span = SpanAt(first);
  while (first < end) {
    const std::uint64_t next = span == spans_.end() ? end : std::min(end, std::max(first, span->first));
    if (first < next) {  // nobody who was early has touched these
      if (one.early) {
        const auto added = spans_.emplace_hint(span, first, Span{.end = next, .users = {}});
        Touch(one, added->second.users, first * kSectors, (next - first) * kSectors);
      }
      first = next;
      continue;
    }
    const std::uint64_t stop = std::min(end, span->second.end);
    Touch(one, span->second.users, first * kSectors, (stop - first) * kSectors);
    first = stop;
    ++span;
  }
}

/// Sectors that have these users have one more.
void SectorOrder::Touch(const One& one, Users& users, std::uint64_t first, std::uint64_t count) const {
  if (const auto later = Behind(one.work, users.written)) {
    one.found(first, count, {one.writes ? Kind::kWriteAfterWrite : Kind::kWriteAfterRead, *later});
  }
  if (one.writes) {
    if (const auto later = Behind(one.work, users.read)) one.found(first, count, {Kind::kReadAfterWrite, *later});
  }
  if (one.early) Keep(one.work, one.writes ? users.written : users.read);
}

void SectorOrder::Clear() {
  pages_.clear();
  spans_.clear();
  last_number_ = ~std::uint64_t{0};
  last_page_ = nullptr;
}

/// Null: no part of it alone has been touched by anybody who was early. With `make` it is taken out of its span from
/// then on.
SectorOrder::Page* SectorOrder::PageOf(std::uint64_t number, bool make) {
  if (number == last_number_ && (last_page_ != nullptr || !make)) return last_page_;
  last_number_ = number;
  const auto known = pages_.find(number);
  if (known != pages_.end() || !make) return last_page_ = known == pages_.end() ? nullptr : known->second.get();
  auto page = std::make_unique<Page>();
  SplitAt(number);
  SplitAt(number + 1);
  if (const auto span = spans_.find(number); span != spans_.end()) {
    page->fill(span->second.users);
    spans_.erase(span);
  }
  return last_page_ = (pages_[number] = std::move(page)).get();
}

/// The pages that are kept sector by sector, rising.
std::vector<std::uint64_t> SectorOrder::PagesIn(std::uint64_t first, std::uint64_t end) const {
  std::vector<std::uint64_t> numbers;
  if (end - first < pages_.size()) {
    for (std::uint64_t number = first; number < end; ++number) {
      if (pages_.contains(number)) numbers.push_back(number);
    }
    return numbers;
  }
  for (const auto& [number, page] : pages_) {
    if (first <= number && number < end) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// The one in which the page lies, or the next one.
std::map<std::uint64_t, SectorOrder::Span>::iterator SectorOrder::SpanAt(std::uint64_t page) {
  const auto behind = spans_.upper_bound(page);
  if (behind == spans_.begin()) return behind;
  const auto before = std::prev(behind);
  return page < before->second.end ? before : behind;
}

/// No span goes on from before the page.
void SectorOrder::SplitAt(std::uint64_t page) {
  const auto span = SpanAt(page);
  if (span == spans_.end() || span->first >= page) return;
  spans_.emplace_hint(std::next(span), page, span->second);
  span->second.end = page;
}

std::optional<WorkId> SectorOrder::Behind(WorkId work, const Works& works) const {
  if (works.last == kNoWork) return std::nullopt;
  if (clocks_.Precedes(work, works.last)) return works.last;
  if (works.others == nullptr) return std::nullopt;
  const auto other = std::ranges::find_if(*works.others, [&](WorkId one) { return clocks_.Precedes(work, one); });
  return other == works.others->end() ? std::nullopt : std::optional(*other);
}

void SectorOrder::Keep(WorkId work, Works& works) const {
  // Of those that come before it, and those that are no longer early, nothing needs to be known any more.
  const auto done = [&](WorkId other) {
    return other == work || !clocks_.IsEarly(other) || clocks_.Precedes(other, work);
  };
  if (works.last == work) return;
  if (works.last == kNoWork || done(works.last)) {
    works.last = work;
    return;
  }
  if (clocks_.Precedes(work, works.last)) return;
  if (works.others == nullptr) works.others = std::make_unique<std::vector<WorkId>>();
  std::erase_if(*works.others, done);
  works.others->push_back(work);
}

}  // namespace gridloom::hardware::hazards
