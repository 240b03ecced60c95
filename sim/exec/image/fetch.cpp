#include "sim/exec/image/fetch.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace gridloom::exec {
namespace {

struct HalfBits {
  std::uint16_t bits;
};

/// The sRGB curve (IEC 61966-2-1) for every 8-bit value.
const float* SrgbCurve() {
  static const auto table = [] {
    std::array<float, 256> curve{};
    for (unsigned i = 0; i < curve.size(); ++i) {
      const double c = i / 255.0;
      curve[i] = static_cast<float>(c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
    }
    return curve;
  }();
  return table.data();
}

/// Half to float without a branch: the exponent is moved by a multiplication, which also makes subnormals normal.
GL_INLINE float Widen(HalfBits half) {
  const std::uint32_t magnitude = std::uint32_t{half.bits & 0x7fffu} << 13;
  const std::uint32_t moved = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude | 0x7f800000u;  // infinity, NaN
  const std::uint32_t sign = std::uint32_t{half.bits & 0x8000u} << 16;
  return std::bit_cast<float>(sign | (magnitude >= 0x0f800000u ? special : moved));
}

template <typename T>
GL_INLINE float Normalized(T value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) return static_cast<float>(value) / 255.0f;
  else if constexpr (std::is_same_v<T, std::uint16_t>) return static_cast<float>(value) / 65535.0f;
  else if constexpr (std::is_same_v<T, std::int8_t>) return value == -128 ? -1.0f : static_cast<float>(value) / 127.0f;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return value == -32768 ? -1.0f : static_cast<float>(value) / 32767.0f;
  else return 0.0f;
}

template <typename T, bool kNormalized>
constexpr bool kFloatResult = kNormalized || std::is_same_v<T, float> || std::is_same_v<T, HalfBits>;

/// Bits of one stored channel value as the instruction sees it.
template <typename T, bool kNormalized>
GL_INLINE std::uint32_t Channel(T value) {
  if constexpr (kNormalized) return std::bit_cast<std::uint32_t>(Normalized(value));
  else if constexpr (std::is_same_v<T, float>) return std::bit_cast<std::uint32_t>(value);
  else if constexpr (std::is_same_v<T, HalfBits>) return std::bit_cast<std::uint32_t>(Widen(value));
  else return static_cast<std::uint32_t>(value);
}

template <typename T>
GL_INLINE T Load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

GL_INLINE std::uint32_t BorderBits(const TexelFormat& format, unsigned channel) {
  if (format.is_float()) return std::bit_cast<std::uint32_t>(format.border[channel]);
  const float value = format.border[channel];
  return value > -2147483648.0f && value < 4294967296.0f ? static_cast<std::uint32_t>(static_cast<std::int64_t>(value))
                                                         : 0;
}

/// Channel `channel` of tap `t` in every lane.
template <typename T, bool kNormalized>
GL_INLINE void LoadTap(const std::uint8_t* level, const TexelFormat& format, const Taps& taps, unsigned t,
                       unsigned channel, WordLanes& out) {
  const std::uint8_t* const from = level + channel * sizeof(T);
  if constexpr (kNormalized && std::is_same_v<T, std::uint8_t>) {
    if (format.srgb && channel < 3) {
      const float* const curve = SrgbCurve();
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        out[lane] = std::bit_cast<std::uint32_t>(curve[from[taps.offset[t][lane]]]);
    } else {
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        out[lane] = Channel<T, true>(Load<T>(from + taps.offset[t][lane]));
    }
  } else {
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      out[lane] = Channel<T, kNormalized>(Load<T>(from + taps.offset[t][lane]));
  }
  if (!taps.border) return;
  const std::uint32_t border = BorderBits(format, channel);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const auto outside = static_cast<std::uint32_t>(taps.outside[t][lane]);
    out[lane] = (out[lane] & ~outside) | (border & outside);
  }
}

GL_INLINE void Store(const WordLanes& value, std::uint32_t mask, WordLanes& out) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) out[lane] = mask >> lane & 1 ? value[lane] : out[lane];
}

/// Absent channels read as 0, alpha as 1.
GL_INLINE void StoreAbsent(unsigned channel, bool is_float, std::uint32_t mask, WordLanes& out) {
  const std::uint32_t one = is_float ? std::bit_cast<std::uint32_t>(1.0f) : 1u;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) out[lane] = mask >> lane & 1 ? (channel == 3 ? one : 0) : out[lane];
}

/// Integers that arrive as integers are filtered, too, as an H200 does (tests/data/gpu/integer-filter.txt): of 8 and 16
/// bits the sum rounded to the nearest one, up where two are equally near; of 32 bits rounded down, from an exact sum.
template <typename T, bool kNormalized>
constexpr bool kWord = !kFloatResult<T, kNormalized> && sizeof(T) == 4;
template <typename T, bool kNormalized>
using SumLanes = LaneArray<std::conditional_t<kWord<T, kNormalized>, double, float>>;

/// A channel as a number to weigh.
template <typename T, bool kNormalized>
GL_INLINE auto Number(std::uint32_t bits) {
  if constexpr (kFloatResult<T, kNormalized>) return std::bit_cast<float>(bits);
  else if constexpr (kWord<T, kNormalized>) return static_cast<double>(static_cast<T>(bits));
  else return static_cast<float>(static_cast<std::int32_t>(bits));
}
template <typename T, bool kNormalized, typename Sum>
GL_INLINE std::uint32_t BitsOfSum(Sum sum) {
  if constexpr (kFloatResult<T, kNormalized>) return std::bit_cast<std::uint32_t>(sum);
  else
    return static_cast<std::uint32_t>(
        static_cast<std::int64_t>(std::floor(kWord<T, kNormalized> ? sum : sum + Sum{0.5})));
}

template <typename T, bool kNormalized>
GL_INLINE void FetchTyped(const std::uint8_t* level, const TexelFormat& format, const Taps& taps, std::uint32_t mask,
                          Texels& out) {
  WordLanes value;
  for (unsigned channel = 0; channel < format.channels; ++channel) {
    if (!taps.weighted) {
      LoadTap<T, kNormalized>(level, format, taps, 0, channel, value);
    } else {
      SumLanes<T, kNormalized> sum{};
      for (unsigned t = 0; t < taps.count; ++t) {
        LoadTap<T, kNormalized>(level, format, taps, t, channel, value);
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
          const float weight = taps.weight[t][lane];
          const auto number = Number<T, kNormalized>(value[lane]);
          sum[lane] += weight == 0.0f ? 0 : weight * number;
        }
      }
      for (unsigned lane = 0; lane < kWarpSize; ++lane) value[lane] = BitsOfSum<T, kNormalized>(sum[lane]);
    }
    Store(value, mask, out.channel[channel]);
  }
  for (unsigned channel = format.channels; channel < 4; ++channel)
    StoreAbsent(channel, kFloatResult<T, kNormalized>, mask, out.channel[channel]);
}

template <typename T, bool kNormalized>
GL_INLINE void GatherTyped(const std::uint8_t* level, const TexelFormat& format, const Taps& taps, unsigned component,
                           std::uint32_t mask, Texels& out) {
  constexpr unsigned kOrder[4] = {2, 3, 1, 0};  // taps count x fastest
  for (unsigned i = 0; i < 4; ++i) {
    if (component >= format.channels) {
      StoreAbsent(component, kFloatResult<T, kNormalized>, mask, out.channel[i]);
      continue;
    }
    WordLanes value;
    LoadTap<T, kNormalized>(level, format, taps, kOrder[i], component, value);
    Store(value, mask, out.channel[i]);
  }
}

/// Calls body.template operator()<T, normalised>() for the format.
template <typename F>
GL_INLINE void ByFormat(const TexelFormat& format, F&& body) {
  const bool n = format.normalized;
  switch (format.type) {
    case ChannelType::kUnsigned8:
      return n ? body.template operator()<std::uint8_t, true>() : body.template operator()<std::uint8_t, false>();
    case ChannelType::kUnsigned16:
      return n ? body.template operator()<std::uint16_t, true>() : body.template operator()<std::uint16_t, false>();
    case ChannelType::kSigned8:
      return n ? body.template operator()<std::int8_t, true>() : body.template operator()<std::int8_t, false>();
    case ChannelType::kSigned16:
      return n ? body.template operator()<std::int16_t, true>() : body.template operator()<std::int16_t, false>();
    case ChannelType::kUnsigned32: return body.template operator()<std::uint32_t, false>();
    case ChannelType::kSigned32: return body.template operator()<std::int32_t, false>();
    case ChannelType::kHalf: return body.template operator()<HalfBits, false>();
    case ChannelType::kFloat: return body.template operator()<float, false>();
  }
}

GL_INLINE void FetchBody(const std::uint8_t* level, const TexelFormat& format, const Taps& taps, std::uint32_t mask,
                         Texels& out) {
  ByFormat(
      format, [&]<typename T, bool kNormalized>()
                  __attribute__((always_inline)) { FetchTyped<T, kNormalized>(level, format, taps, mask, out); });
}

GL_INLINE void GatherBody(const std::uint8_t* level, const TexelFormat& format, const Taps& taps, unsigned component,
                          std::uint32_t mask, Texels& out) {
  ByFormat(
      format, [&]<typename T, bool kNormalized>() __attribute__((always_inline)) {
        GatherTyped<T, kNormalized>(level, format, taps, component, mask, out);
      });
}

}  // namespace

GL_SIMD_FUNCTION(FetchTaps, FetchBody,
                 (const std::uint8_t* level, const TexelFormat& format, const Taps& taps, std::uint32_t mask,
                  Texels& out),
                 (level, format, taps, mask, out))
GL_SIMD_FUNCTION(GatherTaps, GatherBody,
                 (const std::uint8_t* level, const TexelFormat& format, const Taps& taps, unsigned component,
                  std::uint32_t mask, Texels& out),
                 (level, format, taps, component, mask, out))

TexelFormat FormatOf(const TextureObject& texture) {
  const ImageResource& image = texture.image;
  TexelFormat format{.type = image.type, .channels = image.channels};
  const bool narrow_integer = image.type != ChannelType::kHalf && BytesOf(image.type) < 4;
  format.normalized = narrow_integer && !texture.read_as_integer;
  format.srgb = texture.srgb && format.normalized && image.type == ChannelType::kUnsigned8;
  for (unsigned i = 0; i < 4; ++i) format.border[i] = texture.border[i];
  return format;
}

}  // namespace gridloom::exec
