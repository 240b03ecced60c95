// How long something takes, as counts by length: small, and cheap to add to.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace gridloom::broker {

/// Lengths in nanoseconds, known to an eighth of their size.
class Latencies {
 public:
  void Add(std::uint64_t ns) {
    ++counts_[BucketOf(ns)];
    ++count_;
    most_ = std::max(most_, ns);
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t most() const { return most_; }
  /// No less than this part of them took; 0 when there are none. Never smaller than the truth.
  std::uint64_t Quantile(double part) const {
    const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen > wanted || (seen == count_ && seen != 0)) return std::min(EndOf(bucket), most_);
    }
    return 0;
  }

 private:
  static constexpr std::size_t kSteps = 8;  ///< of each power of two; lengths below are counted one by one
  static constexpr std::size_t kBuckets = (64 - 2) * kSteps;

  static std::size_t BucketOf(std::uint64_t ns) {
    if (ns < kSteps) return ns;
    const auto shift = static_cast<std::size_t>(std::bit_width(ns)) - 4;
    return shift * kSteps + (ns >> shift);
  }
  /// The largest length of a bucket.
  static std::uint64_t EndOf(std::size_t bucket) {
    if (bucket < kSteps) return bucket;
    const std::size_t shift = bucket / kSteps - 1;
    return ((bucket % kSteps + kSteps + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0, most_ = 0;
};

}  // namespace gridloom::broker
