// Memory of what the program's thread makes for each launch and a thread of the pool drops: with malloc, each such
// block goes back to the arena of the thread that made it, so that both threads wait for that arena's lock, over and
// over. Here blocks go back in chains, without a lock: a thread keeps what it frees until it has a chain, and takes all
// chains that others left when it has none.
#pragma once

#include <cstddef>
#include <new>

namespace gridloom::session {

/// At least `bytes`, aligned like malloc's; large blocks are malloc's. Throws std::bad_alloc.
void* TakeRecycled(std::size_t bytes);
/// `bytes` as it was asked for; by any thread.
void GiveRecycled(void* block, std::size_t bytes) noexcept;

/// For containers and std::allocate_shared.
template <typename T>
struct Recycled {
  using value_type = T;
  static_assert(alignof(T) <= alignof(std::max_align_t));

  Recycled() = default;
  template <typename U>
  Recycled(const Recycled<U>&) noexcept {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(TakeRecycled(count * sizeof(T)));
  }
  void deallocate(T* block, std::size_t count) noexcept { GiveRecycled(block, count * sizeof(T)); }
  template <typename U>
  bool operator==(const Recycled<U>&) const noexcept {
    return true;
  }
};

}  // namespace gridloom::session
