// Who owns how many of the available pages (CRCS paper, section 4.4), as the policy asks: at times that lie behind
// those up to which the part has acted, so that its answers do not depend on how far that was.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/hardware/crcs/readiness.h"
#include "sim/timing/ports.h"

namespace gridloom::hardware::crcs {

class Shares final : public timing::PageShares {
 public:
  /// From then on the kernel owns one available page more or less. Times never go back.
  void Own(timing::Cycle at, timing::WorkId kernel, int change) { changes_.push({at, kernel, change, 0}); }
  void Available(timing::Cycle at, int change) { changes_.push({at, timing::kNoWork, 0, change}); }
  /// Copies to the device, or readings for them, that are under way. These may be told out of order with what the table
  /// does.
  void Loading(timing::Cycle at, int change) { loads_.push({at, change}); }

  /// A kernel of whose CTAs it is known what they touch; nothing is told of it before Build.
  void Announce(timing::WorkId kernel, Readiness readiness) { readiness_.emplace(kernel, std::move(readiness)); }
  void OwnPage(timing::Cycle at, timing::WorkId kernel, std::uint64_t page) {
    if (readiness_.contains(kernel)) pages_.push({at, kernel, page});
  }
  void Forget(timing::WorkId kernel) { readiness_.erase(kernel); }
  Readiness* ReadinessOf(timing::WorkId kernel) {
    const auto readiness = readiness_.find(kernel);
    return readiness == readiness_.end() ? nullptr : &readiness->second;
  }

  Pages At(timing::Cycle now) override;
  std::uint64_t OwnedBy(std::uint32_t launch) const override;
  std::optional<Ready> ReadyOf(std::uint32_t launch) const override;

 private:
  struct Change {
    timing::Cycle at = 0;
    timing::WorkId kernel = timing::kNoWork;
    int own = 0, available = 0;
  };
  struct Load {
    timing::Cycle at = 0;
    int change = 0;
    bool operator>(const Load& other) const { return at > other.at; }
  };
  struct Page {
    timing::Cycle at = 0;
    timing::WorkId kernel = 0;
    std::uint64_t page = 0;
  };
  std::queue<Change> changes_;
  std::queue<Page> pages_;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads_;
  std::unordered_map<timing::WorkId, std::int64_t> owned_;
  std::unordered_map<timing::WorkId, Readiness> readiness_;
  std::int64_t available_ = 0, loading_ = 0;
};

}  // namespace gridloom::hardware::crcs
