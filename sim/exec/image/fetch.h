// Texels as the four channels an instruction gets.
#pragma once

#include <cstdint>

#include "sim/exec/image/lanes.h"
#include "sim/exec/image/taps.h"
#include "sim/exec/texture.h"

namespace gridloom::exec {

/// Four channels of all lanes, as bits: floats, or integers when IsFloatResult says no.
struct Texels {
  WordLanes channel[4];
};

/// How stored texels become channels. Integers that are not normalised arrive sign- or zero-extended.
struct TexelFormat {
  ChannelType type = ChannelType::kFloat;
  std::uint8_t channels = 1;
  bool normalized = false;
  bool srgb = false;
  float border[4] = {0, 0, 0, 0};

  bool is_float() const { return normalized || type == ChannelType::kFloat || type == ChannelType::kHalf; }
};
TexelFormat FormatOf(const TextureObject& texture);

/// Weighted sum of all taps, in their order, in float; taps of weight 0 are left out; rounded for integers that are not
/// normalised. With one tap, that texel as it is. Only lanes of `mask` are written; those that are off read the same
/// addresses as if they were on.
void FetchTaps(const std::uint8_t* level, const TexelFormat& format, const Taps& taps, std::uint32_t mask, Texels& out);

/// One channel of the taps 0 to 3 of a bilinear footprint, each for itself; counterclockwise from the lower left as
/// tld4 returns them: (0, 1), (1, 1), (1, 0), (0, 0) in steps of (x, y).
void GatherTaps(const std::uint8_t* level, const TexelFormat& format, const Taps& taps, unsigned component,
                std::uint32_t mask, Texels& out);

}  // namespace gridloom::exec
