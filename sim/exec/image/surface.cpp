#include "sim/exec/image/surface.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sim/exec/runtime/half.h"

namespace gridloom::exec {
namespace {

bool IsSignedChannel(ChannelType type) {
  return type == ChannelType::kSigned8 || type == ChannelType::kSigned16 || type == ChannelType::kSigned32;
}

/// Clamps `value` into [0, count), or says that it lies outside.
bool Within(std::int64_t& value, std::int64_t count, bool clamp) {
  if (value >= 0 && value < count) return true;
  if (!clamp) return false;
  value = value < 0 ? 0 : count - 1;
  return true;
}

template <typename T>
T Saturated(std::uint32_t bits) {
  if constexpr (std::is_signed_v<T>) {
    const auto value = static_cast<std::int32_t>(bits);
    return static_cast<T>(
        std::clamp<std::int32_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else {
    return static_cast<T>(std::min<std::uint32_t>(bits, std::numeric_limits<T>::max()));
  }
}

/// Calls body with a value of the channel's storage type; halves are their bits.
template <typename F>
void ByChannel(ChannelType type, F&& body) {
  switch (type) {
    case ChannelType::kUnsigned8: return body(std::uint8_t{});
    case ChannelType::kSigned8: return body(std::int8_t{});
    case ChannelType::kUnsigned16:
    case ChannelType::kHalf: return body(std::uint16_t{});
    case ChannelType::kSigned16: return body(std::int16_t{});
    case ChannelType::kUnsigned32:
    case ChannelType::kSigned32:
    case ChannelType::kFloat: return body(std::uint32_t{});
  }
}

template <typename T>
void Reduce(std::uint8_t* at, AtomicOp op, T value) {
  std::atomic_ref<T> cell(*reinterpret_cast<T*>(at));
  using Signed = std::make_signed_t<T>;
  T old = cell.load(std::memory_order_relaxed);
  T next;
  do {
    switch (op) {
      case AtomicOp::kAdd: next = old + value; break;
      case AtomicOp::kMin: next = static_cast<T>(std::min(static_cast<Signed>(old), static_cast<Signed>(value))); break;
      case AtomicOp::kMax: next = static_cast<T>(std::max(static_cast<Signed>(old), static_cast<Signed>(value))); break;
      case AtomicOp::kUMin: next = std::min(old, value); break;
      case AtomicOp::kUMax: next = std::max(old, value); break;
      case AtomicOp::kAnd: next = old & value; break;
      default: next = old | value; break;
    }
  } while (!cell.compare_exchange_weak(old, next));
}

}  // namespace

std::uint32_t AccessBytes(const ImageResource& image, const SurfaceImm& imm) {
  return imm.formatted && imm.count != 0 ? image.texel_bytes() : std::uint32_t{imm.bytes} * imm.count;
}

SurfacePlace LocateSurface(const ImageResource& image, const SurfaceImm& imm, const SurfacePoint& point) {
  const ImageLevel& level = image.levels[0];
  const std::uint32_t bytes = AccessBytes(image, imm);
  const std::int64_t row = std::int64_t{level.width} * image.texel_bytes();
  const bool clamp = imm.out_of_range == OutOfRange::kClamp;
  const unsigned axes = CoordinateCount(imm.geometry);
  std::int64_t x = std::int64_t{point.x} * (imm.formatted ? image.texel_bytes() : 1);
  std::int64_t y = axes > 1 ? point.y : 0;
  std::int64_t z = IsLayered(imm.geometry) ? std::int64_t{point.layer} : axes > 2 ? point.z : 0;
  bool inside = x >= 0 && x + bytes <= row;
  if (!inside && clamp && row >= bytes) {
    x = x < 0 ? 0 : (row - bytes) / bytes * bytes;
    inside = true;
  }
  inside = Within(y, level.height, clamp) && inside;
  inside = Within(z, level.depth, clamp) && inside;
  if (!inside)
    return {imm.out_of_range == OutOfRange::kTrap ? SurfaceAccess::kOutside : SurfaceAccess::kDropped, nullptr};
  auto* const at =
      reinterpret_cast<std::uint8_t*>(level.base + static_cast<std::uint64_t>(z) * level.slice_bytes +
                                      static_cast<std::uint64_t>(y) * level.row_bytes + static_cast<std::uint64_t>(x));
  const std::uint32_t align = imm.formatted ? BytesOf(image.type) : bytes;
  if (x % align != 0) return {SurfaceAccess::kMisaligned, at};
  return {SurfaceAccess::kInside, at};
}

void LoadFormatted(const ImageResource& image, const std::uint8_t* at, unsigned count, std::uint32_t* values) {
  const bool is_float = image.type == ChannelType::kHalf || image.type == ChannelType::kFloat;
  ByChannel(image.type, [&](auto zero) {
    for (unsigned i = 0; i < count; ++i) {
      if (i >= image.channels) {
        values[i] = i != 3 ? 0 : is_float ? std::bit_cast<std::uint32_t>(1.0f) : 1;
        continue;
      }
      decltype(zero) stored;
      std::memcpy(&stored, at + i * sizeof stored, sizeof stored);
      values[i] = image.type == ChannelType::kHalf
                      ? std::bit_cast<std::uint32_t>(HalfToFloat(static_cast<std::uint16_t>(stored)))
                      : static_cast<std::uint32_t>(stored);
    }
  });
}

void StoreFormatted(const ImageResource& image, std::uint8_t* at, unsigned count, const std::uint32_t* values) {
  ByChannel(image.type, [&](auto zero) {
    using T = decltype(zero);
    for (unsigned i = 0; i < count && i < image.channels; ++i) {
      const T stored = image.type == ChannelType::kHalf ? static_cast<T>(FloatToHalf(std::bit_cast<float>(values[i])))
                                                        : Saturated<T>(values[i]);
      std::memcpy(at + i * sizeof stored, &stored, sizeof stored);
    }
  });
}

void ReduceSurface(const ImageResource& image, const SurfaceImm& imm, std::uint8_t* at, std::uint64_t value) {
  AtomicOp op = imm.op;
  if (imm.sign_by_format && !IsSignedChannel(image.type)) {
    if (op == AtomicOp::kMin) op = AtomicOp::kUMin;
    if (op == AtomicOp::kMax) op = AtomicOp::kUMax;
  }
  if (imm.bytes == 8) Reduce<std::uint64_t>(at, op, value);
  else Reduce<std::uint32_t>(at, op, static_cast<std::uint32_t>(value));
}

}  // namespace gridloom::exec
