// Messages that have been sent to a component, in the order in which it takes them.
#pragma once

#include <algorithm>
#include <cstdint>
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
    if (head_ > 0) {
      messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(head_));
      sorted_ -= head_;
      head_ = 0;
    }
    keys_.clear();
    // The index makes keys unique, so that an unstable sort does.
    for (std::size_t i = 0; i < messages_.size(); ++i) keys_.push_back({Key(messages_[i]), static_cast<std::uint32_t>(i)});
    std::sort(keys_.begin() + static_cast<std::ptrdiff_t>(sorted_), keys_.end());
    std::inplace_merge(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(sorted_), keys_.end());
    scratch_.clear();
    for (const auto& [key, index] : keys_) scratch_.push_back(messages_[index]);
    messages_.swap(scratch_);
    sorted_ = messages_.size();
  }

  bool empty() const { return head_ == messages_.size(); }
  Cycle next_arrival() const { return empty() ? kNever : messages_[head_].arrival; }
  const Message& front() const { return messages_[head_]; }
  void Pop() {
    if (++head_ == messages_.size()) {
      messages_.clear();
      head_ = sorted_ = 0;
    }
  }

 private:
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
