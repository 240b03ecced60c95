// Bounds-checked reading of little-endian records out of bytes that nobody vouches for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace gridloom::image {

using Bytes = std::span<const std::byte>;

/// `bytes[offset, offset + size)`, or nothing when that is not wholly inside.
inline std::optional<Bytes> Slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

/// A copy of the record at `offset`; the bytes need no alignment.
template <typename T>
std::optional<T> ReadAt(Bytes bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto slice = Slice(bytes, offset, sizeof(T));
  if (!slice) return std::nullopt;
  T value;
  std::memcpy(&value, slice->data(), sizeof(T));
  return value;
}

inline std::string_view AsText(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline Bytes AsBytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// Text from `offset` up to its NUL or the end of the bytes; empty when the offset is outside.
inline std::string_view TextAt(Bytes bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const std::string_view rest = AsText(bytes.subspan(static_cast<std::size_t>(offset)));
  return rest.substr(0, rest.find('\0'));
}

}  // namespace gridloom::image
