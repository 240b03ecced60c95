#include "sim/exec/reference_counts.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace gridloom::exec {

void ReferenceCounts::OnRange(const RangeCall& call) {
  const std::optional<Allocation> allocation = memory_.Find(call.array);
  const std::lock_guard lock(mutex_);
  ++calls_;
  if (!allocation || call.width == 0 || call.count == 0) return;
  const std::uint64_t low = allocation->base, high = allocation->base + allocation->bytes;
  // Pieces that leave no page between them are one range: no call takes longer than its allocation has pages.
  const bool dense = call.count == 1 || call.stride <= page_bytes_;
  const std::uint64_t pieces = dense ? 1 : call.count;
  const unsigned __int128 whole = static_cast<unsigned __int128>(call.count - 1) * call.stride + call.width;
  const unsigned __int128 width = dense ? whole : call.width;
  std::uint64_t first_piece = 0;
  if (!dense && call.base < low) first_piece = (low - call.base) / call.stride;  // the last that begins at or before `low`
  std::optional<std::uint64_t> last_page;
  for (std::uint64_t i = first_piece; i < pieces; ++i) {
    const unsigned __int128 begin = static_cast<unsigned __int128>(i) * call.stride + call.base;
    if (begin >= high) break;
    const unsigned __int128 from = std::max<unsigned __int128>(begin, low), to = std::min<unsigned __int128>(begin + width, high);
    if (from >= to) continue;
    std::uint64_t first = static_cast<std::uint64_t>(from) / page_bytes_;
    const std::uint64_t last = static_cast<std::uint64_t>(to - 1) / page_bytes_;
    if (last_page) first = std::max(first, *last_page + 1);  // a page counts once per call
    if (first <= last) Add(call, first, last);
    last_page = last_page ? std::max(*last_page, last) : last;
  }
}

void ReferenceCounts::Add(const RangeCall& call, std::uint64_t first, std::uint64_t last) {
  const std::int64_t sign = call.op == RangeOp::kSet ? 1 : -1;
  const auto step = [&](std::uint64_t page, std::int64_t by) {
    const auto it = steps_.try_emplace(page).first;
    if (call.flags & kRangeRead) it->second.read += by;
    if (call.flags & kRangeWrite) it->second.write += by;
    if (it->second == Count{}) steps_.erase(it);
  };
  step(first, sign);
  step(last + 1, -sign);
  if (call.op == RangeOp::kSet) set_[call.cta_index].Add({first, last, call.flags & (kRangeRead | kRangeWrite)});
}

std::map<std::uint64_t, ReferenceCounts::Count> ReferenceCounts::Counts() const {
  const std::lock_guard lock(mutex_);
  std::map<std::uint64_t, Count> counts;
  Count count;
  for (auto it = steps_.begin(); it != steps_.end(); ++it) {
    count.read += it->second.read;
    count.write += it->second.write;
    if (count == Count{}) continue;
    for (std::uint64_t page = it->first; page < std::next(it)->first; ++page) counts[page] = count;
  }
  return counts;
}

std::map<std::uint64_t, PageSet> ReferenceCounts::SetByCta() const {
  const std::lock_guard lock(mutex_);
  std::map<std::uint64_t, PageSet> sets(set_.begin(), set_.end());
  for (auto& [cta, pages] : sets) pages.Sort();
  return sets;
}

std::uint64_t ReferenceCounts::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

}  // namespace gridloom::exec
