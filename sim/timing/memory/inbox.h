// Messages that have been sent to a component, in the order in which it takes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// Orders by (arrival, source); messages of one source keep the order in which they were added. So neither the window nor the
/// number of host threads can change the order.
template <typename Message, auto kSource>
class Inbox {
 public:
  void Add(const Message& message) { messages_.push_back(message); }

  /// After the last Add of a phase.
  void Sort() {
    if (sorted_ == messages_.size()) return;
    SortNew();
    // What is new mostly arrives after what is left over.
    const auto begin = messages_.begin() + static_cast<std::ptrdiff_t>(head_);
    const auto middle = messages_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto before = [](const Message& a, const Message& b) { return Key(a) < Key(b); };
    if (begin != middle && before(*middle, *(middle - 1))) std::inplace_merge(begin, middle, messages_.end(), before);
    sorted_ = messages_.size();
  }

  /// All that are there, in any order before Sort.
  std::span<const Message> messages() const { return std::span(messages_).subspan(head_); }
  bool empty() const { return head_ == messages_.size(); }
  Cycle next_arrival() const { return empty() ? kNever : messages_[head_].arrival; }
  const Message& front() const { return messages_[head_]; }
  void Pop() {
    if (++head_ == messages_.size()) {
      messages_.clear();
      head_ = sorted_ = 0;
    } else if (head_ >= kCompact && head_ * 2 >= messages_.size()) {
      messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(head_));
      sorted_ -= head_;
      head_ = 0;
    }
  }

 private:
  static constexpr std::size_t kCompact = 64, kFew = 16;

  /// The messages since the last Sort. The index makes keys unique, so that an unstable sort does.
  void SortNew() {
    const auto first = messages_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const std::size_t count = messages_.size() - sorted_;
    if (count == 1) return;
    keys_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      keys_.push_back({Key(first[static_cast<std::ptrdiff_t>(i)]), static_cast<std::uint32_t>(i)});
    }
    if (std::ranges::is_sorted(keys_)) return;
    scratch_.assign(first, messages_.end());
    if (count <= kFew) {
      PlaceByRank(first, count);
      return;
    }
    std::ranges::sort(keys_);
    for (std::size_t i = 0; i < count; ++i) first[static_cast<std::ptrdiff_t>(i)] = scratch_[keys_[i].index];
  }

  /// Compares all pairs and branches on none: the order of few messages is too random to predict.
  void PlaceByRank(typename std::vector<Message>::iterator first, std::size_t count) {
    std::array<std::uint32_t, kFew> rank{};
    for (std::size_t i = 1; i < count; ++i) {
      std::uint32_t own = 0;
      for (std::size_t j = 0; j < i; ++j) {
        const bool later = keys_[j].key > keys_[i].key;
        rank[j] += later;
        own += !later;
      }
      rank[i] = own;
    }
    for (std::size_t i = 0; i < count; ++i) first[rank[i]] = scratch_[i];
  }

  struct KeyIndex {
    std::uint64_t key;
    std::uint32_t index;
    auto operator<=>(const KeyIndex&) const = default;
  };
  /// 47 bits of cycles: four days at 400 MHz of simulated time. 16 bits of source.
  static std::uint64_t Key(const Message& message) { return message.arrival << 16 | message.*kSource; }

  std::vector<Message> messages_, scratch_;
  std::vector<KeyIndex> keys_;
  std::size_t head_ = 0, sorted_ = 0;
};

}  // namespace gridloom::timing
