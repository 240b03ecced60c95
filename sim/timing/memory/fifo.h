// First in, first out, in one array that is used again and again.
#pragma once

#include <cstddef>
#include <vector>

namespace gridloom::timing {

template <typename T>
class Fifo {
 public:
  bool empty() const { return head_ == tail_; }
  const T& front() const { return ring_[head_ & mask_]; }
  void pop_front() { ++head_; }
  void push_back(const T& item) {
    if (tail_ - head_ == ring_.size()) Grow();
    ring_[tail_++ & mask_] = item;
  }

 private:
  void Grow() {
    std::vector<T> larger(ring_.empty() ? 16 : ring_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = ring_[i & mask_];
    ring_ = std::move(larger);
    mask_ = ring_.size() - 1;
  }

  std::vector<T> ring_;  // a power of two
  std::size_t head_ = 0, tail_ = 0, mask_ = 0;
};

}  // namespace gridloom::timing
