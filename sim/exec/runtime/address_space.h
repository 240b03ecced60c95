// A reserved range of host addresses, and a map of free extents to hand out parts of it.
// Not thread-safe: the owner holds a lock.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "rewriter/support/result.h"

namespace gridloom::exec {

inline constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t RoundUp(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Free extents of some range. Knows nothing of what lies in the taken ones.
class ExtentMap {
 public:
  /// The smallest free extent that holds it, the lowest of those; 0 when there is none.
  std::uint64_t Take(std::uint64_t bytes, std::uint64_t align);
  /// Takes this very range, if it is free.
  bool TakeAt(std::uint64_t address, std::uint64_t bytes);
  void Give(std::uint64_t address, std::uint64_t bytes);

 private:
  void Insert(std::uint64_t address, std::uint64_t bytes);
  void Cut(std::map<std::uint64_t, std::uint64_t>::iterator extent, std::uint64_t address, std::uint64_t bytes);

  std::map<std::uint64_t, std::uint64_t> by_address_;          // start -> bytes, never adjacent
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // the same ones: (bytes, start)
};

class AddressSpace {
 public:
  /// Reserves address space without memory: at a fixed high address when that is free, so that device pointers are the
  /// same in every run, else anywhere; less than asked for when the process may not have so much, down to 1 GiB. With
  /// guard zones on both sides where there is room for all of it.
  static Result<AddressSpace> Reserve(std::uint64_t bytes);
  AddressSpace(AddressSpace&& other) noexcept;
  AddressSpace& operator=(AddressSpace&&) = delete;
  ~AddressSpace();

  std::uint64_t base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  bool has_guard_zones() const { return zone_ != 0; }
  bool Contains(std::uint64_t address) const { return address - base_ < bytes_; }
  ExtentMap& free() { return free_; }

 private:
  AddressSpace(std::uint64_t base, std::uint64_t bytes, std::uint64_t zone);

  std::uint64_t base_ = 0, bytes_ = 0;
  std::uint64_t zone_ = 0;  // bytes reserved on each side besides
  ExtentMap free_;
};

}  // namespace gridloom::exec
