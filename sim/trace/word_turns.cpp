#include "sim/trace/word_turns.h"

#include <algorithm>

namespace gridloom::trace {

void TurnFinder::Clear() {
  turns_.clear();
  open_ = false;
  pause_ = looked_ = 0;
}

std::size_t TurnFinder::Continue(std::span<const std::uint64_t> kept, std::span<const std::uint64_t> next) {
  const std::span<const std::uint64_t> turn = kept.subspan(now_.at, now_.period);
  std::size_t place = counted_ % now_.period, same = 0;
  for (; same < next.size() && next[same] == turn[place]; ++same) place = place + 1 == turn.size() ? 0 : place + 1;
  counted_ += same;
  return same;
}

std::span<const std::uint64_t> TurnFinder::End(std::span<const std::uint64_t> kept) {
  open_ = false;
  now_.more = counted_ / now_.period;
  if (now_.more != 0) turns_.push_back(now_);
  return kept.subspan(now_.at, counted_ % now_.period);
}

std::size_t TurnFinder::Look(std::span<const std::uint64_t> kept) {
  if (looked_ < pause_ || kept.size() < kLeastWords + kMostPeriod) {
    ++looked_;
    return kept.size();
  }
  looked_ = 0;
  const std::size_t begin = kept.size() - kLeastWords;
  for (std::size_t period = 1; period <= kMostPeriod; ++period) {
    const std::uint64_t* const words = kept.data();
    std::size_t i = kept.size();
    while (i > begin && words[i - 1] == words[i - 1 - period]) --i;
    if (i > begin) continue;
    now_ = {.at = begin - period, .period = period};
    // Never words of the turns before.
    if (!turns_.empty() && now_.at < turns_.back().at + WordTurns::kKeptTurns * turns_.back().period) break;
    const std::size_t end = now_.at + WordTurns::kKeptTurns * period;
    counted_ = kept.size() - end;
    open_ = true;
    pause_ = 0;
    return end;
  }
  pause_ = std::clamp(2 * pause_, 1u, kLongestPause);
  return kept.size();
}

}  // namespace gridloom::trace
