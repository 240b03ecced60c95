// Numbers as bytes and back: little endian, or seven bits a byte with the smallest first. The reader trusts nothing:
// beyond the end it gives zeros and remembers that it failed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gridloom::trace {

class ByteWriter {
 public:
  std::span<const std::uint8_t> bytes() const { return {buffer_.data(), used_}; }
  std::size_t size() const { return used_; }
  void Clear() { used_ = 0; }

  template <typename T>
  void Fixed(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(Grow(sizeof value), &value, sizeof value);
  }
  /// Room for so many further bytes, to be filled at once.
  std::uint8_t* Grow(std::size_t count) {
    std::uint8_t* const at = Room(count);
    used_ += count;
    return at;
  }
  /// The last so many bytes are not to be.
  void TakeBack(std::size_t count) { used_ -= count; }
  static constexpr std::size_t kLongestVarint = 10;
  void Varint(std::uint64_t value) { EndAt(PutVarint(Room(kLongestVarint), value)); }
  /// Small numbers of either sign: zigzag.
  void Signed(std::int64_t value) { Varint(ZigZag(value)); }
  void Text(std::string_view text) {
    Varint(text.size());
    if (!text.empty()) std::memcpy(Grow(text.size()), text.data(), text.size());
  }

  /// Where the next bytes go, with room for so many. EndAt says how far they came.
  std::uint8_t* Room(std::size_t count) {
    if (buffer_.size() - used_ < count) buffer_.resize(std::max(used_ + count, 2 * buffer_.size()));
    return buffer_.data() + used_;
  }
  void EndAt(const std::uint8_t* end) { used_ = static_cast<std::size_t>(end - buffer_.data()); }

  static constexpr std::uint64_t ZigZag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  /// Where they end.
  static std::uint8_t* PutVarint(std::uint8_t* at, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
    *at++ = static_cast<std::uint8_t>(value);
    return at;
  }
  /// The same for a value that stays only if it is wanted.
  template <typename T>
  static std::uint8_t* PutIf(bool wanted, std::uint8_t* at, T value) {
    std::memcpy(at, &value, sizeof value);
    return at + (wanted ? sizeof value : 0);
  }

 private:
  std::vector<std::uint8_t> buffer_;  ///< longer than what is used
  std::size_t used_ = 0;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }
  std::size_t left() const { return bytes_.size() - at_; }
  void Fail() { failed_ = true; }

  template <typename T>
  T Fixed() {
    T value{};
    if (left() < sizeof value) failed_ = true;
    if (failed_) return T{};
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  /// So many bytes as they are; null when they are not there.
  const std::uint8_t* Take(std::size_t count) {
    if (left() < count) failed_ = true;
    if (failed_) return nullptr;
    return bytes_.data() + std::exchange(at_, at_ + count);
  }
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) break;
      const std::uint8_t byte = bytes_[at_++];
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    failed_ = true;
    return 0;
  }
  std::int64_t Signed() {
    const std::uint64_t value = Varint();
    return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  std::string_view Text() {
    const std::uint64_t size = Varint();
    if (size > left()) failed_ = true;
    if (failed_) return {};
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + at_), size);
    at_ += size;
    return text;
  }
  /// A count of things that take at least `least` bytes each; fails when so many cannot follow.
  std::uint64_t Count(std::uint64_t least = 1) {
    const std::uint64_t count = Varint();
    if (count > left() / least) failed_ = true;
    return failed_ ? 0 : count;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace gridloom::trace
