#include "sim/exec/runtime/mbarrier_waits.h"

#include <algorithm>

namespace gridloom::exec {

MbarrierWaits::Wait* MbarrierWaits::Find(const Warp& warp, const void* place, bool parity) {
  const auto is_it = [&](const Wait& wait) {
    return wait.place == place && wait.warp == &warp && wait.parity == parity;
  };
  if (last_ < waits_.size() && is_it(waits_[last_])) return &waits_[last_];
  const auto found = std::ranges::find_if(waits_, is_it);
  if (found == waits_.end()) return nullptr;
  last_ = static_cast<std::size_t>(found - waits_.begin());
  return &*found;
}

void MbarrierWaits::Add(const Warp& warp, std::uint32_t lane, const void* place, bool parity) {
  Wait* wait = Find(warp, place, parity);
  if (!wait)
    wait = &waits_.emplace_back(Wait{.place = place, .warp = &warp, .waiting = 0, .over = 0, .parity = parity});
  wait->waiting |= 1u << lane;
}

void MbarrierWaits::EndPhase(const void* place) {
  for (Wait& wait : waits_) {
    if (wait.place != place) continue;
    wait.over |= wait.waiting;
    wait.waiting = 0;
  }
}

bool MbarrierWaits::Take(const Warp& warp, std::uint32_t lane, const void* place, bool parity) {
  Wait* const wait = Find(warp, place, parity);
  if (!wait) return false;
  const std::uint32_t bit = 1u << lane;
  const bool over = (wait->over & bit) != 0;
  wait->over &= ~bit;
  wait->waiting &= ~bit;
  if ((wait->over | wait->waiting) == 0) {
    *wait = waits_.back();
    waits_.pop_back();
  }
  return over;
}

void MbarrierWaits::Forget(const Warp& warp) {
  std::erase_if(waits_, [&](const Wait& wait) { return wait.warp == &warp; });
}

}  // namespace gridloom::exec
