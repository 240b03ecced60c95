// Immediates and argument order of the texture and surface helpers: what the lifter writes and the runtime reads.
#pragma once

#include <cstdint>

#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

enum class ImageGeometry : std::uint8_t { k1d, k2d, k3d, kA1d, kA2d, kCube, kAcube };

/// Coordinates besides the layer: x; x, y; or x, y, z.
constexpr unsigned CoordinateCount(ImageGeometry geometry) {
  switch (geometry) {
    case ImageGeometry::k1d:
    case ImageGeometry::kA1d: return 1;
    case ImageGeometry::k2d:
    case ImageGeometry::kA2d: return 2;
    default: return 3;
  }
}
constexpr bool IsLayered(ImageGeometry geometry) {
  return geometry == ImageGeometry::kA1d || geometry == ImageGeometry::kA2d || geometry == ImageGeometry::kAcube;
}
constexpr bool IsCube(ImageGeometry geometry) {
  return geometry == ImageGeometry::kCube || geometry == ImageGeometry::kAcube;
}

enum class LodMode : std::uint8_t { kBase, kLevel, kGradient };

/// Where the sampler of an instruction comes from: the texture itself (unified mode), another operand, or the
/// initialiser of a .samplerref variable, whose settings then stand in `settings`.
enum class SamplerSource : std::uint8_t { kTexture, kOperand, kSettings };

/// Sampler settings in one byte: address modes in two bits each from bit 0, linear filtering, unnormalised coordinates.
constexpr std::uint8_t SamplerSettings(unsigned mode_x, unsigned mode_y, unsigned mode_z, bool linear,
                                       bool unnormalized) {
  return static_cast<std::uint8_t>(mode_x | mode_y << 2 | mode_z << 4 | unsigned{linear} << 6 |
                                   unsigned{unnormalized} << 7);
}

/// imm of kTexture, kTextureGather and kTextureAddress (out: i64).
/// in: i64 texture, [i64 sampler when kOperand], [i32 layer], coordinates (f32 or i32), [lod of the coordinates' type |
/// f32 derivatives by x, then by y, one per coordinate], [i32 offsets, one per coordinate]; out: 4 x i32.
struct TextureImm {
  ImageGeometry geometry = ImageGeometry::k1d;
  LodMode lod = LodMode::kBase;
  SamplerSource sampler = SamplerSource::kTexture;
  std::uint8_t settings = 0;
  bool float_coordinates = false;
  bool has_offset = false;
  std::uint8_t component = 0;  ///< kTextureGather: which channel
  bool gather = false;         ///< kTextureAddress: of kTextureGather
};

enum class ImageQuery : std::uint8_t {
  kWidth,
  kHeight,
  kDepth,
  kChannelDataType,
  kChannelOrder,
  kNormalizedCoords,
  kArraySize,
  kMipmapLevels,
  kSamples,
  kForceUnnormalizedCoords,
  kFilterMode,
  kAddressMode0,
  kAddressMode1,
  kAddressMode2,
  kMemoryLayout,
  kIsTexture,
  kIsSurface,  ///< istypep: any handle is answered
};

/// imm of kImageQuery. in: i64 texture or surface, [i32 level]; out: i32.
struct ImageQueryImm {
  ImageQuery query = ImageQuery::kWidth;
  bool surface = false;
  bool has_level = false;
  std::uint8_t unused[5] = {};
};

enum class OutOfRange : std::uint8_t { kTrap, kClamp, kZero };

/// imm of the surface helpers. in: i64 surface, [i32 layer], i32 coordinates, [values]; out of kSurfaceLoad: values, of
/// kSurfaceAddress, which takes no values: i64.
/// Values are integers of `bytes` bytes, `count` of them; formatted ones are 32 bits wide whatever the surface holds.
struct SurfaceImm {
  ImageGeometry geometry = ImageGeometry::k1d;
  OutOfRange out_of_range = OutOfRange::kTrap;
  std::uint8_t bytes = 4;
  std::uint8_t count = 1;
  bool formatted = false;        ///< .p: x counts texels, values are converted to the surface's format
  AtomicOp op = AtomicOp::kAdd;  ///< kSurfaceReduce
  bool sign_by_format = false;   ///< kSurfaceReduce: min and max are signed if the surface's format is
  std::uint8_t unused = 0;
};

}  // namespace gridloom::exec
