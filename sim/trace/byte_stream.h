// Numbers as bytes and back: little endian, or seven bits a byte with the smallest first. The reader trusts nothing: beyond the
// end it gives zeros and remembers that it failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gridloom::trace {

class ByteWriter {
 public:
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  void Clear() { bytes_.clear(); }

  template <typename T>
  void Fixed(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(Grow(sizeof value), &value, sizeof value);
  }
  /// Room for so many further bytes, to be filled at once.
  std::uint8_t* Grow(std::size_t count) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + count);
    return bytes_.data() + at;
  }
  void Varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::uint8_t>(value | 0x80));
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  /// Small numbers of either sign: zigzag.
  void Signed(std::int64_t value) { Varint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63)); }
  void Text(std::string_view text) {
    Varint(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }

 private:
  std::vector<std::uint8_t> bytes_;
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
