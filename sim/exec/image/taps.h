// From texture coordinates to texels: which ones a fetch reads and with what weights (CUDA C++ Programming Guide,
// appendix "Texture Fetching"). With N texels along an axis and u the coordinate in texels:
//   point:  T[floor(u)]
//   linear: (1 - a) T[i] + a T[i + 1],  i = floor(u - 0.5), a = frac(u - 0.5), where u - 0.5 has 8 bits of fraction
// A normalised coordinate x is first brought into range:
//   wrap: x - floor(x)   mirror: the same, reversed where floor(x) is odd   and then u = x * N
//   (point fetches reverse the texel, not the coordinate).
// Indices out of range are clamped, taken modulo N (wrap), or stand for the border colour. Coordinates that are not
// normalised know clamp and border only. NaN counts as 0.
#pragma once

#include <cstdint>

#include "sim/exec/image/lanes.h"
#include "sim/exec/texture.h"

namespace gridloom::exec {

/// How an axis is addressed, after the rules about what goes with what.
struct Sampler {
  AddressMode address[3] = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  FilterMode filter = FilterMode::kPoint;
  FilterMode mip_filter = FilterMode::kPoint;
  bool normalized = false;
  bool seamless_cubemap = false;
  float lod_bias = 0, min_lod = 0, max_lod = 0;
  std::uint32_t max_anisotropy = 0;
};

/// Up to 8 texels per lane.
struct Taps {
  static constexpr unsigned kMost = 8;
  unsigned count = 1;
  bool weighted = false;      ///< false: one tap of weight 1
  bool border = false;        ///< some axis can give the border colour: `outside` is filled
  OffsetLanes offset[kMost];  ///< bytes from the start of the level
  FloatLanes weight[kMost];   ///< k / 256 per axis: products of three are exact
  IntLanes outside[kMost];    ///< -1: the border colour instead, else 0
};

/// Coordinates along each axis, all of one kind; null where an axis is not addressed.
struct Coordinates {
  unsigned axes = 1;
  bool is_float = true;
  const float* value[3] = {nullptr, nullptr, nullptr};
  const std::int32_t* integer[3] = {nullptr, nullptr, nullptr};
  const std::int32_t* offset[3] = {nullptr, nullptr, nullptr};  ///< in texels
};

/// Taps of a level for all lanes. `slice`: slice of every lane, in range; null: the third coordinate, or slice 0.
/// `zero_outside`: linear memory, whose texels out of range read as the border.
void FindTaps(const ImageLevel& level, std::uint32_t texel_bytes, const Sampler& sampler,
              const Coordinates& coordinates, const IntLanes* slice, bool zero_outside, Taps& out);

}  // namespace gridloom::exec
