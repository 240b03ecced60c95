#include "sim/hardware/crcs/host_pages.h"

#include <algorithm>

namespace gridloom::hardware::crcs {

using timing::WorkId;

namespace {

/// x * a / b without overflow; `up`: rounded up.
std::uint64_t Scale(std::uint64_t x, std::uint64_t a, std::uint64_t b, bool up = false) {
  if (a == b || b == 0) return x;
  return static_cast<std::uint64_t>((static_cast<__uint128_t>(x) * a + (up ? b - 1 : 0)) / b);
}

}  // namespace

ByteRange Extent::PartIn(std::uint64_t page, unsigned shift) const {
  const std::uint64_t low = (FirstPage(shift) + page) << shift, high = (FirstPage(shift) + page + 1) << shift;
  return {std::max(low, address) - address, std::min(high, address + span) - address};
}

std::uint64_t Extent::BytesOf(const ByteRange& part) const {
  return Scale(part.end, bytes, span) - Scale(part.begin, bytes, span);
}

ByteRange Extent::OnHost(const ByteRange& part, std::uint64_t of) const {
  return {Scale(part.begin, host_span, of), Scale(part.end, host_span, of, true)};
}

void HostPages::Use(WorkId user, const Extent& extent) {
  const std::uint64_t pages = extent.Pages(shift_);
  if (pages != 0) users_[user] = {.extent = extent, .used = std::vector<bool>(pages, true), .left = pages};
}

std::optional<HostPages::Page> HostPages::InTheWay(const Reuses& reuses, const ByteRange& on_host) const {
  if (reuses == nullptr) return std::nullopt;
  for (const timing::HostReuse& reuse : *reuses) {
    const auto found = users_.find(reuse.earlier);
    if (found == users_.end()) continue;
    const auto& [extent, used, left] = found->second;
    // Bytes counted in the earlier work's memory: they may begin before it, and end behind it.
    const auto within = [&](std::uint64_t byte) {
      const auto distance = static_cast<__int128>(byte) - reuse.begin;
      return static_cast<std::uint64_t>(std::clamp<__int128>(distance, 0, extent.host_span));
    };
    const ByteRange common = {within(on_host.begin), within(on_host.end)};
    if (common.begin == common.end) continue;
    const std::uint64_t begin = std::min(Scale(common.begin, extent.span, extent.host_span), extent.span - 1);
    const std::uint64_t end =
        std::clamp(Scale(common.end, extent.span, extent.host_span, true), begin + 1, extent.span);
    const std::uint64_t first = extent.FirstPage(shift_);
    for (std::uint64_t page = (extent.address + begin) >> shift_; page <= (extent.address + end - 1) >> shift_;
         ++page) {
      if (used[page - first]) return Page{reuse.earlier, page - first};
    }
  }
  return std::nullopt;
}

std::vector<HostPages::Page> HostPages::Leave(const Page& page) {
  const auto found = users_.find(page.user);
  if (found == users_.end() || !found->second.used[page.number]) return {};
  found->second.used[page.number] = false;
  if (--found->second.left == 0) users_.erase(found);
  auto waiting = waiting_.extract(page);
  return waiting.empty() ? std::vector<Page>() : std::move(waiting.mapped());
}

std::vector<HostPages::Page> HostPages::LeaveAll(WorkId user) {
  users_.erase(user);
  std::vector<Page> all;
  for (auto next = waiting_.lower_bound({user, 0}); next != waiting_.end() && next->first.user == user;) {
    all.insert(all.end(), next->second.begin(), next->second.end());
    next = waiting_.erase(next);
  }
  return all;
}

}  // namespace gridloom::hardware::crcs
