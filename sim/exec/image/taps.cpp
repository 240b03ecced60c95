#include "sim/exec/image/taps.h"

#include <cmath>

namespace gridloom::exec {
namespace {

/// Texels along one axis: index 0 and, with linear filtering, index 1, in range; weight of the second.
struct Axis {
  IntLanes index[2];
  IntLanes outside[2];
  FloatLanes weight;
};

GL_INLINE float Defined(float x) { return x == x ? x : 0.0f; }

/// Into [0, 1), or to 1 exactly where rounding takes it there.
GL_INLINE float Wrapped(float x) { return Defined(x - std::floor(x)); }

GL_INLINE float Mirrored(float x) {
  const float whole = std::floor(x);
  const float rest = Defined(x - whole);
  const float half = whole * 0.5f;
  return half != std::floor(half) ? 1.0f - rest : rest;
}

/// The texel of n that a point fetch reads, counted from the other end where floor(x) is odd: on a seam between two
/// texels that is another one than floor((1 - frac(x)) n). Devices do the former (NVIDIA Warp's test of closest
/// sampling at mirror ties).
GL_INLINE float MirroredTexel(float x, float n) {
  const float whole = std::floor(x);
  const float texel = std::floor(Defined(x - whole) * n);
  const float half = whole * 0.5f;
  return half != std::floor(half) ? n - 1.0f - texel : texel;
}

/// Far enough outside for every offset, near enough for an int.
GL_INLINE float Bounded(float u, float count) {
  u = u > -64.0f ? u : -64.0f;
  return u < count + 64.0f ? u : count + 64.0f;
}

/// Wrapped indices are at most one image below and two above (an offset is reduced first).
GL_INLINE void Place(std::int32_t index, std::int32_t count, AddressMode mode, std::int32_t& placed,
                     std::int32_t& outside) {
  if (mode == AddressMode::kWrap) {
    index = index < 0 ? index + count : index;
    index = index >= count ? index - count : index;
    placed = index >= count ? index - count : index;
    outside = 0;
    return;
  }
  outside = mode == AddressMode::kBorder && (index < 0 || index >= count) ? -1 : 0;
  placed = index < 0 ? 0 : index >= count ? count - 1 : index;
}

/// Texel offsets as floats; for wrapped axes reduced to [0, count).
void ReadOffsets(const std::int32_t* offset, bool wrap, std::int32_t count, FloatLanes& shift) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    std::int32_t texels = offset ? offset[lane] : 0;
    if (wrap && offset) texels = (texels % count + count) % count;
    shift[lane] = static_cast<float>(texels);
  }
}

template <AddressMode kMode, bool kNormalized, bool kLinear>
GL_INLINE void FillFloatAxis(const float* x, const std::int32_t* offset, std::int32_t count, Axis& axis) {
  const auto n = static_cast<float>(count);
  FloatLanes shift;
  ReadOffsets(offset, kMode == AddressMode::kWrap, count, shift);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    float u = Defined(x[lane]);
    if constexpr (!kNormalized) u += shift[lane];
    else if constexpr (kMode == AddressMode::kWrap) u = Wrapped(u) * n + shift[lane];
    else if constexpr (kMode == AddressMode::kMirror && !kLinear) u = MirroredTexel(u + shift[lane] / n, n);
    else if constexpr (kMode == AddressMode::kMirror) u = Mirrored(u + shift[lane] / n) * n;
    else u = u * n + shift[lane];
    u = Bounded(u, n);
    if constexpr (kLinear) {
      const auto fixed = static_cast<std::int32_t>(std::nearbyint((u - 0.5f) * 256.0f));
      const std::int32_t first = fixed >> 8;
      axis.weight[lane] = static_cast<float>(fixed & 255) * (1.0f / 256.0f);
      Place(first, count, kMode, axis.index[0][lane], axis.outside[0][lane]);
      Place(first + 1, count, kMode, axis.index[1][lane], axis.outside[1][lane]);
    } else {
      Place(static_cast<std::int32_t>(std::floor(u)), count, kMode, axis.index[0][lane], axis.outside[0][lane]);
    }
  }
}

template <AddressMode kMode, bool kNormalized>
GL_INLINE void FillByFilter(bool linear, const float* x, const std::int32_t* offset, std::int32_t count, Axis& axis) {
  if (linear) FillFloatAxis<kMode, kNormalized, true>(x, offset, count, axis);
  else FillFloatAxis<kMode, kNormalized, false>(x, offset, count, axis);
}

GL_INLINE void FillFloat(AddressMode mode, bool normalized, bool linear, const float* x, const std::int32_t* offset,
                         std::int32_t count, Axis& axis) {
  if (!normalized) {
    if (mode == AddressMode::kBorder) return FillByFilter<AddressMode::kBorder, false>(linear, x, offset, count, axis);
    return FillByFilter<AddressMode::kClamp, false>(linear, x, offset, count, axis);
  }
  switch (mode) {
    case AddressMode::kWrap: return FillByFilter<AddressMode::kWrap, true>(linear, x, offset, count, axis);
    case AddressMode::kMirror: return FillByFilter<AddressMode::kMirror, true>(linear, x, offset, count, axis);
    case AddressMode::kBorder: return FillByFilter<AddressMode::kBorder, true>(linear, x, offset, count, axis);
    case AddressMode::kClamp: return FillByFilter<AddressMode::kClamp, true>(linear, x, offset, count, axis);
  }
}

GL_INLINE void FillInteger(bool border, const std::int32_t* x, const std::int32_t* offset, std::int32_t count,
                           Axis& axis) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    // A coordinate near the end of the range plus an offset must not come in again at the other end.
    std::int64_t index = x[lane];
    if (offset) index += offset[lane];
    const bool below = index < 0, above = index >= count;
    axis.outside[0][lane] = border && (below || above) ? -1 : 0;
    axis.index[0][lane] = static_cast<std::int32_t>(below ? 0 : above ? count - 1 : index);
  }
}

/// Adds `axis` to what the taps have so far: offsets and weights of tap t, and with linear filtering of tap t + count.
GL_INLINE void Extend(const Axis& axis, std::uint64_t stride, bool linear, Taps& taps) {
  const auto step = static_cast<std::int64_t>(stride);
  if (linear) {
    for (unsigned t = 0; t < taps.count; ++t) {
      const unsigned far = t + taps.count;
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        taps.offset[far][lane] = taps.offset[t][lane] + axis.index[1][lane] * step;
        taps.weight[far][lane] = taps.weight[t][lane] * axis.weight[lane];
        taps.weight[t][lane] *= 1.0f - axis.weight[lane];
        taps.outside[far][lane] = taps.outside[t][lane] | axis.outside[1][lane];
      }
    }
  }
  for (unsigned t = 0; t < taps.count; ++t) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      taps.offset[t][lane] += axis.index[0][lane] * step;
      taps.outside[t][lane] |= axis.outside[0][lane];
    }
  }
  if (linear) taps.count *= 2;
}

GL_INLINE void FindTapsBody(const ImageLevel& level, std::uint32_t texel_bytes, const Sampler& sampler,
                            const Coordinates& coordinates, const IntLanes* slice, bool zero_outside, Taps& out) {
  const bool linear = sampler.filter == FilterMode::kLinear && coordinates.is_float;
  out.count = 1;
  out.weighted = linear;
  out.border = false;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    out.offset[0][lane] = slice ? (*slice)[lane] * static_cast<std::int64_t>(level.slice_bytes) : 0;
    out.weight[0][lane] = 1.0f;
    out.outside[0][lane] = 0;
  }
  const std::uint32_t size[3] = {level.width, level.height, level.depth};
  const std::uint64_t stride[3] = {texel_bytes, level.row_bytes, level.slice_bytes};
  Axis axis;
  for (unsigned i = 0; i < coordinates.axes; ++i) {
    const AddressMode mode = zero_outside ? AddressMode::kBorder : sampler.address[i];
    const auto count = static_cast<std::int32_t>(size[i]);
    out.border |= mode == AddressMode::kBorder;
    if (coordinates.is_float) {
      FillFloat(mode, sampler.normalized, linear, coordinates.value[i], coordinates.offset[i], count, axis);
    } else {
      FillInteger(mode == AddressMode::kBorder, coordinates.integer[i], coordinates.offset[i], count, axis);
    }
    Extend(axis, stride[i], linear, out);
  }
}

}  // namespace

GL_SIMD_FUNCTION(FindTaps, FindTapsBody,
                 (const ImageLevel& level, std::uint32_t texel_bytes, const Sampler& sampler,
                  const Coordinates& coordinates, const IntLanes* slice, bool zero_outside, Taps& out),
                 (level, texel_bytes, sampler, coordinates, slice, zero_outside, out))

}  // namespace gridloom::exec
