// One instruction as the GPU reads it: 128 bits, little endian, bit 0 lowest (Volta and later; NAK,
// src/nouveau/compiler/nak of Mesa, sm70_encode.rs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gridloom::machine {

inline constexpr std::size_t kWordBytes = 16;

struct Word {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// `width` bits, at most 64, from bit `first` on.
  std::uint64_t Get(unsigned first, unsigned width) const {
    std::uint64_t value = first >= 64 ? high >> (first - 64) : low >> first;
    if (first < 64 && first != 0) value |= high << (64 - first);
    return width >= 64 ? value : value & ((std::uint64_t{1} << width) - 1);
  }
  /// Bits of `value` above `width` are dropped.
  void Set(unsigned first, unsigned width, std::uint64_t value) {
    for (unsigned bit = 0; bit < width; ++bit) {
      const unsigned at = first + bit;
      std::uint64_t& half = at >= 64 ? high : low;
      const std::uint64_t mask = std::uint64_t{1} << (at % 64);
      half = ((value >> bit) & 1) != 0 ? half | mask : half & ~mask;
    }
  }
  friend bool operator==(const Word&, const Word&) = default;
  friend Word operator&(const Word& a, const Word& b) { return {a.low & b.low, a.high & b.high}; }
  friend Word operator|(const Word& a, const Word& b) { return {a.low | b.low, a.high | b.high}; }
  friend Word operator~(const Word& a) { return {~a.low, ~a.high}; }
};

/// The word that starts at byte `offset`; the caller has seen to it that there are 16 bytes.
Word ReadWord(std::span<const std::byte> code, std::size_t offset);
void WriteWord(std::span<std::byte> code, std::size_t offset, const Word& word);

}  // namespace gridloom::machine
