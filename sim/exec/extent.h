// Sizes and places in memory as programs pass them. Their sums and products are made here: one that has no place in an
// address space is too large and stays so, instead of wrapping around to a small number.
#pragma once

#include <cstdint>

namespace gridloom::exec {

/// A number of bytes, rows or elements. What is too large compares greater than everything else.
class Extent {
 public:
  constexpr Extent(std::uint64_t value) : value_(value) {}  // NOLINT: numbers are extents

  /// No process has addresses from 2^48 on, where it does not ask the system for them.
  constexpr bool fits() const { return value_ <= kMost; }
  /// The number; meaningless unless it fits.
  constexpr std::uint64_t value() const { return value_; }
  /// The next multiple of `step`, which is not 0.
  constexpr Extent RoundedUp(std::uint64_t step) const {
    const std::uint64_t rest = value_ % step;
    return rest == 0 ? *this : *this + Extent(step - rest);
  }

  friend constexpr Extent operator+(Extent a, Extent b) {
    std::uint64_t sum = 0;
    return __builtin_add_overflow(a.value_, b.value_, &sum) ? TooLarge() : Extent(sum);
  }
  friend constexpr Extent operator*(Extent a, Extent b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a.value_, b.value_, &product) ? TooLarge() : Extent(product);
  }
  friend constexpr bool operator==(Extent a, Extent b) = default;
  friend constexpr auto operator<=>(Extent a, Extent b) = default;

 private:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  static constexpr Extent TooLarge() { return ~std::uint64_t{0}; }
  std::uint64_t value_;
};

/// Rows in linear memory: `depth` slices of `height` rows of `width` bytes, `pitch` bytes from row to row, `slice` from
/// slice to slice.
struct Box {
  std::uint64_t width = 0, height = 1, depth = 1;
  std::uint64_t pitch = 0, slice = 0;

  constexpr bool empty() const { return width == 0 || height == 0 || depth == 0; }
  /// Bytes in its rows.
  constexpr Extent bytes() const { return Extent(width) * height * depth; }
  /// Bytes from the first one of it to the last one; 0 when it is empty.
  constexpr Extent span() const {
    return empty() ? Extent(0) : Extent(depth - 1) * slice + Extent(height - 1) * pitch + Extent(width);
  }
};

/// Whether `bytes` bytes from `start` on are addresses at all.
constexpr bool IsRange(std::uint64_t start, Extent bytes) { return (Extent(start) + bytes).fits(); }

/// Whether `bytes` bytes from `start` on lie in the `outer_bytes` bytes from `outer` on.
constexpr bool LiesIn(std::uint64_t outer, Extent outer_bytes, std::uint64_t start, Extent bytes) {
  return start >= outer && IsRange(start, bytes) && Extent(start) + bytes <= Extent(outer) + outer_bytes;
}

}  // namespace gridloom::exec
