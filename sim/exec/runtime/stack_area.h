// Memory for the stacks of many warps, mapped once and kept: [guard][room][stack 0][guard][room][stack 1] … The room is
// for handlers of signals that arrive while a thread of the program's runs a warp. Pages are touched only as deep as
// the warps and the handlers go.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridloom::exec {

class StackArea {
 public:
  StackArea() = default;
  ~StackArea();
  StackArea(const StackArea&) = delete;
  StackArea& operator=(const StackArea&) = delete;

  /// At least `count` stacks of `bytes` each (whole pages). False without memory. What was there before is gone.
  bool Require(std::size_t count, std::size_t bytes);

  std::byte* low(std::size_t index) const { return base_ + index * stride_ + (stride_ - bytes_); }
  std::size_t bytes() const { return bytes_; }
  std::size_t count() const { return count_; }
  /// The stack whose bytes, room or guard hold `address`, or count().
  std::size_t IndexOf(std::uintptr_t address) const;
  bool InGuard(std::uintptr_t address) const;
  void ReturnMemory();

 private:
  void Unmap();

  std::byte* base_ = nullptr;
  std::size_t count_ = 0, bytes_ = 0, stride_ = 0;
};

}  // namespace gridloom::exec
