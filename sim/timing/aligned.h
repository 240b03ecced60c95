// Arrays that begin at a line of the host's caches, so that an entry that fits a line needs one.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace gridloom::timing {

template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <typename U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* array, std::size_t) { ::operator delete(array, kLine); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace gridloom::timing
