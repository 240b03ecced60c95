#include "sim/hardware/crcs/shares.h"

namespace gridloom::hardware::crcs {

timing::PageShares::Pages Shares::At(timing::Cycle now) {
  for (; !changes_.empty() && changes_.front().at <= now; changes_.pop()) {
    const Change& change = changes_.front();
    available_ += change.available;
    if (change.own == 0) continue;
    const auto owned = owned_.try_emplace(change.kernel, 0).first;
    owned->second += change.own;
    if (owned->second == 0) owned_.erase(owned);
  }
  for (; !pages_.empty() && pages_.front().at <= now; pages_.pop()) {
    const Page& page = pages_.front();
    if (const auto readiness = readiness_.find(page.kernel); readiness != readiness_.end())
      readiness->second.Own(page.page);
  }
  for (; !loads_.empty() && loads_.top().at <= now; loads_.pop()) loading_ += loads_.top().change;
  return {.available = static_cast<std::uint64_t>(available_), .loading = loading_ > 0};
}

std::uint64_t Shares::OwnedBy(std::uint32_t launch) const {
  const auto owned = owned_.find(launch);
  return owned == owned_.end() ? 0 : static_cast<std::uint64_t>(owned->second);
}

std::optional<timing::PageShares::Ready> Shares::ReadyOf(std::uint32_t launch) const {
  const auto readiness = readiness_.find(launch);
  if (readiness == readiness_.end()) return std::nullopt;
  return Ready{.ready = readiness->second.ready(), .begun = readiness->second.begun()};
}

}  // namespace gridloom::hardware::crcs
