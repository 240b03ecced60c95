// Messages that have been sent to a component, in the order in which it takes them.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// Orders by (arrival, source); messages of one source keep the order in which they were added. So neither the window
/// nor the number of host threads can change the order. Messages have order(), arrival << 16 | source: 47 bits of
/// cycles are four days at 400 MHz of simulated time. They lie in a ring, since many wait and are not to be moved.
template <typename Message>
class Inbox {
 public:
  void Add(const Message& message) { new_.push_back(message); }

  /// After the last Add of a phase.
  void Sort() {
    if (new_.empty()) return;
    Keys keys;
    std::uint64_t least = FindKeys(keys);
    // What is new mostly arrives after what is left over.
    if (head_ != tail_ && At(tail_ - 1).order() > least) {
      TakeBack(least);
      least = FindKeys(keys);
    }
    while (tail_ - head_ + new_.size() > ring_.size()) Grow();
    if (!keys.usable) PlaceBySort();
    else if (new_.size() <= 2 * kLanes) PlaceByRank<2>(keys);
    else if (new_.size() <= 4 * kLanes) PlaceByRank<4>(keys);
    else PlaceByRank<kFew / kLanes>(keys);
    tail_ += new_.size();
    new_.clear();
  }

  bool has_new() const { return !new_.empty(); }
  /// Calls the function for each message that has been added since Sort.
  template <typename Function>
  void ForEachNew(const Function& function) const {
    for (const Message& message : new_) function(message);
  }
  /// All that have been sorted, in their order, which has to stay the same.
  template <typename Function>
  void ForEach(const Function& function) {
    for (std::size_t i = head_; i != tail_; ++i) function(At(i));
  }
  /// The next five are about messages that have been sorted.
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  Cycle next_arrival() const { return empty() ? kNever : front().order() >> kSourceBits; }
  const Message& front() const { return ring_[head_ & mask_]; }
  void Pop() { ++head_; }

 private:
  static constexpr unsigned kSourceBits = 16;
  /// Up to so many are placed by rank. Their keys are words: the order, relative to one that is not above any, and the
  /// place among the new ones, which makes keys unique and keeps the order of one source's.
  static constexpr unsigned kIndexBits = 5, kOrderBits = 31 - kIndexBits;
  static constexpr std::size_t kFew = 1 << kIndexBits, kFirst = 16, kLanes = 4;
  struct alignas(16) Keys {
    std::uint32_t of[kFew];
    bool usable = false;  ///< not if there are too many messages, or too many cycles between them
  };

  Message& At(std::size_t index) { return ring_[index & mask_]; }

  /// Returns the least order.
  std::uint64_t FindKeys(Keys& keys) const {
    const std::size_t count = new_.size();
    std::uint64_t least = new_.front().order(), all = 0;
    const std::uint64_t origin = least - (std::uint64_t{1} << (kOrderBits - 1));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t order = new_[i].order(), relative = order - origin;
      least = std::min(least, order);
      all |= relative;
      if (i < kFew) keys.of[i] = static_cast<std::uint32_t>(relative << kIndexBits | i);
    }
    keys.usable = count <= kFew && all >> kOrderBits == 0;
    return least;
  }

  /// Compares all pairs and branches on none: the order of few messages is too random to predict. `kSteps` times four
  /// keys are looked at.
  template <std::size_t kSteps>
  void PlaceByRank(Keys& keys) {
    constexpr std::uint32_t kLast = ~std::uint32_t{0} >> 1;
    const std::size_t count = new_.size();
    for (std::size_t i = count; i < kSteps * kLanes; ++i) keys.of[i] = kLast;
    __m128i own[kSteps], rank[kSteps];
    for (std::size_t step = 0; step < kSteps; ++step) {
      own[step] = _mm_load_si128(reinterpret_cast<const __m128i*>(keys.of + step * kLanes));
      rank[step] = _mm_setzero_si128();
    }
    // With two steps, it does not pay to have a number of turns that the host cannot predict.
    for (std::size_t i = 0; i < (kSteps <= 2 ? kSteps * kLanes : count); ++i) {
      const __m128i other = _mm_set1_epi32(static_cast<int>(keys.of[i]));
      for (std::size_t step = 0; step < kSteps; ++step)
        rank[step] = _mm_sub_epi32(rank[step], _mm_cmpgt_epi32(own[step], other));
    }
    alignas(16) std::uint32_t ranks[kSteps * kLanes];
    for (std::size_t step = 0; step < kSteps; ++step)
      _mm_store_si128(reinterpret_cast<__m128i*>(ranks + step * kLanes), rank[step]);
    for (std::size_t i = 0; i < count; ++i) At(tail_ + ranks[i]) = new_[i];
  }

  void PlaceBySort() {
    std::ranges::stable_sort(new_, {}, &Message::order);
    for (std::size_t i = 0; i < new_.size(); ++i) At(tail_ + i) = new_[i];
  }

  /// What is left over and comes after `least` is to be sorted again, before what is new.
  void TakeBack(std::uint64_t least) {
    std::size_t first = tail_;
    while (first != head_ && At(first - 1).order() > least) --first;
    std::vector<Message> again;
    for (std::size_t i = first; i != tail_; ++i) again.push_back(At(i));
    new_.insert(new_.begin(), again.begin(), again.end());
    tail_ = first;
  }

  void Grow() {
    std::vector<Message> larger(ring_.empty() ? kFirst : ring_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = At(i);
    ring_ = std::move(larger);
    mask_ = ring_.size() - 1;
  }

  std::vector<Message> ring_;  // a power of two
  std::size_t head_ = 0, tail_ = 0, mask_ = 0;
  std::vector<Message> new_;  // in the order in which they were added
};

}  // namespace gridloom::timing
