#include "tests/sim/exec/texture_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace gridloom::test {
namespace {

using exec::AddressMode;
using exec::ChannelType;

double HalfValue(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const double mantissa = bits & 1023;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

template <typename T>
T Load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double ChannelValue(ChannelType type, bool normalized, const std::uint8_t* at) {
  switch (type) {
    case ChannelType::kUnsigned8: return normalized ? Load<std::uint8_t>(at) / 255.0 : Load<std::uint8_t>(at);
    case ChannelType::kUnsigned16: return normalized ? Load<std::uint16_t>(at) / 65535.0 : Load<std::uint16_t>(at);
    case ChannelType::kUnsigned32: return Load<std::uint32_t>(at);
    case ChannelType::kSigned8:
      return normalized ? std::max(Load<std::int8_t>(at) / 127.0, -1.0) : Load<std::int8_t>(at);
    case ChannelType::kSigned16:
      return normalized ? std::max(Load<std::int16_t>(at) / 32767.0, -1.0) : Load<std::int16_t>(at);
    case ChannelType::kSigned32: return Load<std::int32_t>(at);
    case ChannelType::kHalf: return HalfValue(Load<std::uint16_t>(at));
    case ChannelType::kFloat: return Load<float>(at);
  }
  return 0;
}

bool Normalizes(const exec::TextureObject& texture) {
  const ChannelType type = texture.image.type;
  const bool small = type == ChannelType::kUnsigned8 || type == ChannelType::kSigned8 ||
                     type == ChannelType::kUnsigned16 || type == ChannelType::kSigned16;
  return small && !texture.read_as_integer;
}

double Linearized(double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); }

// "frac(x)" and its mirror image, as the guide defines wrap and mirror addressing.
float BringIn(float x, AddressMode mode) {
  const float whole = std::floor(x);
  if (mode == AddressMode::kWrap) return x - whole;
  return std::fmod(whole, 2.0f) == 0 ? x - whole : 1 - (x - whole);
}

// Point fetches count texels from the other end in mirrored copies of the image.
std::int64_t MirroredTexel(float x, std::int64_t n) {
  const float whole = std::floor(x);
  if (!std::isfinite(x)) return 0;
  const auto texel = static_cast<std::int64_t>(std::floor((x - whole) * static_cast<float>(n)));
  return std::clamp<std::int64_t>(std::fmod(whole, 2.0f) == 0 ? texel : n - 1 - texel, 0, n - 1);
}

struct AxisRead {
  std::int64_t index[2] = {0, 0};
  bool border[2] = {false, false};
  double weight[2] = {1, 0};
};

void Resolve(std::int64_t index, std::int64_t n, AddressMode mode, std::int64_t& out, bool& border) {
  border = false;
  if (mode == AddressMode::kWrap) {
    out = ((index % n) + n) % n;
  } else {
    border = mode == AddressMode::kBorder && (index < 0 || index >= n);
    out = std::clamp<std::int64_t>(index, 0, n - 1);
  }
}

AxisRead ReadAxis(const exec::TextureObject& texture, float x, int offset, std::int64_t n, AddressMode mode,
                  bool linear) {
  if (std::isnan(x)) x = 0;
  float u = x;
  std::int64_t shift = offset;
  if (texture.normalized_coordinates) {
    if (mode == AddressMode::kMirror) {
      x += static_cast<float>(offset) / static_cast<float>(n);
      shift = 0;
    }
    if (mode == AddressMode::kMirror && !linear) return {.index = {MirroredTexel(x, n), 0}};
    if (mode == AddressMode::kWrap || mode == AddressMode::kMirror) x = BringIn(x, mode);
    if (std::isnan(x)) x = 0;
    u = x * static_cast<float>(n);
  } else if (mode != AddressMode::kBorder) {
    mode = AddressMode::kClamp;
  }
  u = std::clamp(u, -1000.0f, static_cast<float>(n) + 1000.0f);
  AxisRead read;
  if (!linear) {
    Resolve(static_cast<std::int64_t>(std::floor(u)) + shift, n, mode, read.index[0], read.border[0]);
    return read;
  }
  // xB = x - 0.5 in 1.8 fixed point: i = floor(xB), alpha = frac(xB).
  const double fixed = std::nearbyint((static_cast<double>(u) - 0.5) * 256) / 256;
  const auto i = static_cast<std::int64_t>(std::floor(fixed));
  read.weight[1] = fixed - std::floor(fixed);
  read.weight[0] = 1 - read.weight[1];
  for (int k = 0; k < 2; ++k) Resolve(i + k + shift, n, mode, read.index[k], read.border[k]);
  return read;
}

Texel Border(const exec::TextureObject& texture) {
  Texel texel{0, 0, 0, 1};
  for (unsigned c = 0; c < texture.image.channels; ++c)
    texel[c] = ReadsFloat(texture) ? texture.border[c] : std::trunc(texture.border[c]);
  return texel;
}

Texel Combine(const exec::TextureObject& texture, const exec::ImageLevel& level, const AxisRead (&axis)[3],
              std::int64_t slice) {
  Texel sum{0, 0, 0, 0};
  for (int tap = 0; tap < 8; ++tap) {
    const int k[3] = {tap & 1, tap >> 1 & 1, tap >> 2};
    const double weight = axis[0].weight[k[0]] * axis[1].weight[k[1]] * axis[2].weight[k[2]];
    if (weight == 0) continue;
    const bool border = axis[0].border[k[0]] || axis[1].border[k[1]] || axis[2].border[k[2]];
    const std::int64_t z = slice >= 0 ? slice : axis[2].index[k[2]];
    const Texel texel =
        border ? Border(texture) : StoredTexel(texture, level, axis[0].index[k[0]], axis[1].index[k[1]], z);
    for (unsigned c = 0; c < 4; ++c) sum[c] += weight * texel[c];
  }
  return sum;
}

}  // namespace

TestImage::TestImage(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  resource_.type = shape.type;
  resource_.channels = static_cast<std::uint8_t>(shape.channels);
  resource_.dims = static_cast<std::uint8_t>(shape.dims);
  resource_.layered = shape.layered;
  resource_.cubemap = shape.cubemap;
  resource_.level_count = static_cast<std::uint8_t>(shape.levels);
  const bool keeps_depth = shape.layered || shape.cubemap;
  for (unsigned i = 0; i < shape.levels; ++i) {
    exec::ImageLevel& level = resource_.levels[i];
    level.width = std::max(shape.width >> i, 1u);
    level.height = std::max(shape.height >> i, 1u);
    level.depth = keeps_depth ? shape.depth : std::max(shape.depth >> i, 1u);
    level.row_bytes = level.width * resource_.texel_bytes() + 16;
    level.slice_bytes = level.row_bytes * level.height + 32;
    auto& bytes = memory_.emplace_back(level.slice_bytes * level.depth);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    // Halves and floats: finite, of moderate size.
    if (shape.type == ChannelType::kFloat) {
      for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
        const float value = std::uniform_real_distribution<float>(-4, 4)(random);
        std::memcpy(&bytes[at], &value, 4);
      }
    } else if (shape.type == ChannelType::kHalf) {
      for (std::size_t at = 0; at + 2 <= bytes.size(); at += 2)
        bytes[at + 1] = static_cast<std::uint8_t>((bytes[at + 1] & 0x83) | (random() % 18 << 2));
    }
    level.base = reinterpret_cast<std::uint64_t>(bytes.data());
  }
}

bool ReadsFloat(const exec::TextureObject& texture) {
  return Normalizes(texture) || texture.image.type == ChannelType::kHalf || texture.image.type == ChannelType::kFloat;
}

Texel StoredTexel(const exec::TextureObject& texture, const exec::ImageLevel& level, std::int64_t x, std::int64_t y,
                  std::int64_t z) {
  const exec::ImageResource& image = texture.image;
  const auto* at = reinterpret_cast<const std::uint8_t*>(level.base) +
                   static_cast<std::uint64_t>(z) * level.slice_bytes + static_cast<std::uint64_t>(y) * level.row_bytes +
                   static_cast<std::uint64_t>(x) * image.texel_bytes();
  Texel texel{0, 0, 0, 1};
  for (unsigned c = 0; c < image.channels; ++c) {
    texel[c] = ChannelValue(image.type, Normalizes(texture), at + c * exec::BytesOf(image.type));
    if (texture.srgb && image.type == ChannelType::kUnsigned8 && Normalizes(texture) && c < 3)
      texel[c] = Linearized(texel[c]);
  }
  return texel;
}

Texel ReferenceFetch(const exec::TextureObject& texture, unsigned level_number, const std::array<float, 3>& coordinate,
                     const std::array<int, 3>& offset, unsigned axes, std::int64_t slice) {
  const exec::ImageLevel& level = texture.image.levels[level_number];
  const std::int64_t size[3] = {level.width, level.height, level.depth};
  const bool linear = texture.filter == exec::FilterMode::kLinear;
  AxisRead axis[3];
  for (unsigned i = 0; i < axes; ++i)
    axis[i] = ReadAxis(texture, coordinate[i], offset[i], size[i], texture.address[i], linear);
  return Combine(texture, level, axis, slice);
}

Texel ReferenceFetchInteger(const exec::TextureObject& texture, unsigned level_number,
                            const std::array<std::int32_t, 3>& index, const std::array<int, 3>& offset, unsigned axes,
                            std::int64_t slice) {
  const exec::ImageLevel& level = texture.image.levels[level_number];
  const std::int64_t size[3] = {level.width, level.height, level.depth};
  AxisRead axis[3];
  for (unsigned i = 0; i < axes; ++i) {
    const bool border =
        texture.address[i] == AddressMode::kBorder || texture.image.kind == exec::ImageResource::Kind::kLinear;
    Resolve(std::int64_t{index[i]} + offset[i], size[i], border ? AddressMode::kBorder : AddressMode::kClamp,
            axis[i].index[0], axis[i].border[0]);
  }
  return Combine(texture, level, axis, slice);
}

}  // namespace gridloom::test
