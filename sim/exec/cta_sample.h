// Which CTAs of a launch are looked at where all of them would be too many.
#pragma once

#include <cstdint>

namespace gridloom::exec {

/// All CTAs of a grid of up to `most`; of a larger one about that many: the first, the last and others picked by a hash of the
/// linear index, so that no row, column or distance is preferred. The same ones whenever it is asked.
class CtaSample {
 public:
  CtaSample() = default;  ///< all
  CtaSample(std::uint64_t ctas, std::uint64_t most) : every_(most == 0 ? ctas : (ctas + most - 1) / most), last_(ctas - 1) {}

  bool Contains(std::uint64_t cta_index) const {
    if (every_ <= 1 || cta_index == 0 || cta_index == last_) return true;
    std::uint64_t hash = cta_index * 0x9e3779b97f4a7c15;  // multiplicative hashing: the high bits are mixed
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
    return (hash >> 32) % every_ == 0;
  }

 private:
  std::uint64_t every_ = 1, last_ = 0;
};

}  // namespace gridloom::exec
