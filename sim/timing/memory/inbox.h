// Messages that have been sent to a component, in the order in which it takes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// Orders by (arrival, source); messages of one source keep the order in which they were added. So neither the window nor the
/// number of host threads can change the order. Messages have order(), arrival << 16 | source: 47 bits of cycles are four days at 400 MHz
/// of simulated time. They lie in a ring, since many wait and are not to be moved.
template <typename Message>
class Inbox {
 public:
  void Add(const Message& message) {
    if (tail_ - head_ == ring_.size()) Grow();
    At(tail_++) = message;
  }

  /// After the last Add of a phase.
  void Sort() {
    if (sorted_ == tail_) return;
    std::uint64_t least = At(sorted_).order();
    for (std::size_t i = sorted_ + 1; i != tail_; ++i) least = std::min(least, At(i).order());
    // What is new mostly arrives after what is left over.
    while (sorted_ != head_ && At(sorted_ - 1).order() > least) --sorted_;
    SortFrom(sorted_);
    sorted_ = tail_;
  }

  bool has_new() const { return sorted_ != tail_; }
  /// Those that have been added since Sort.
  template <typename Function>
  void ForEachNew(const Function& function) const {
    for (std::size_t i = sorted_; i != tail_; ++i) function(ring_[i & mask_]);
  }
  bool empty() const { return head_ == tail_; }
  Cycle next_arrival() const { return empty() ? kNever : front().order() >> 16; }
  const Message& front() const { return ring_[head_ & mask_]; }
  void Pop() { ++head_; }

 private:
  static constexpr std::size_t kFew = 16;
  /// A message's place among those that are sorted makes orders unique, so that an unstable sort does.
  struct Key {
    std::uint64_t order;
    std::uint32_t index;
    auto operator<=>(const Key&) const = default;
  };

  Message& At(std::size_t index) { return ring_[index & mask_]; }

  void SortFrom(std::size_t first) {
    const std::size_t count = tail_ - first;
    if (count == 1) return;
    keys_.clear();
    for (std::size_t i = 0; i < count; ++i) keys_.push_back({At(first + i).order(), static_cast<std::uint32_t>(i)});
    if (std::ranges::is_sorted(keys_)) return;
    scratch_.clear();
    for (std::size_t i = 0; i < count; ++i) scratch_.push_back(At(first + i));
    if (count <= kFew) return PlaceByRank(first, count);
    std::ranges::sort(keys_);
    for (std::size_t i = 0; i < count; ++i) At(first + i) = scratch_[keys_[i].index];
  }

  /// Compares all pairs and branches on none: the order of few messages is too random to predict.
  void PlaceByRank(std::size_t first, std::size_t count) {
    std::array<std::uint32_t, kFew> rank{};
    for (std::size_t i = 1; i < count; ++i) {
      std::uint32_t own = 0;
      for (std::size_t j = 0; j < i; ++j) {
        const bool later = keys_[j].order > keys_[i].order;
        rank[j] += later;
        own += !later;
      }
      rank[i] = own;
    }
    for (std::size_t i = 0; i < count; ++i) At(first + rank[i]) = scratch_[i];
  }

  void Grow() {
    std::vector<Message> larger(ring_.empty() ? kFew : ring_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = At(i);
    ring_ = std::move(larger);
    mask_ = ring_.size() - 1;
  }

  std::vector<Message> ring_;  // a power of two
  std::size_t head_ = 0, sorted_ = 0, tail_ = 0, mask_ = 0;
  std::vector<Message> scratch_;
  std::vector<Key> keys_;
};

}  // namespace gridloom::timing
