// Something that moves bytes one after the other at a fixed rate: a drive, one direction of a link.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/timing/cycle.h"

namespace gridloom::hardware::crcs {

class SerialLine {
 public:
  /// Rate in 10^6 bytes a second, 0: bytes take no time; cycles of `mhz`.
  SerialLine(std::uint64_t mb_s, std::uint64_t mhz) : mb_s_(mb_s), mhz_(mhz) {}

  /// When the last of these bytes has passed, which wait behind all before them.
  timing::Cycle Send(timing::Cycle now, std::uint64_t bytes) {
    if (mb_s_ == 0) return now;
    free_ = std::max(free_, now * mb_s_) + bytes * mhz_;
    return (free_ + mb_s_ - 1) / mb_s_;
  }

 private:
  const std::uint64_t mb_s_, mhz_;
  std::uint64_t free_ = 0;  // cycles times the rate, so that nothing is lost by rounding
};

}  // namespace gridloom::hardware::crcs
