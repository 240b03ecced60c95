// suld, sust and sured for one lane (PTX ISA, 9.7.11): where a surface coordinate lies, and what is done there.
#pragma once

#include <cstdint>

#include "sim/exec/contract/image_immediates.h"
#include "sim/exec/texture.h"

namespace gridloom::exec {

struct SurfacePoint {
  std::uint32_t layer = 0;
  std::int32_t x = 0, y = 0, z = 0;  ///< x in bytes, or in texels with SurfaceImm::formatted
};

enum class SurfaceAccess : std::uint8_t { kInside, kDropped, kOutside, kMisaligned };

struct SurfacePlace {
  SurfaceAccess access = SurfaceAccess::kInside;
  std::uint8_t* at = nullptr;
};

/// Bytes that one lane's access covers.
std::uint32_t AccessBytes(const ImageResource& image, const SurfaceImm& imm);
/// Applies the mode for coordinates out of range. The access must be aligned to its element size.
SurfacePlace LocateSurface(const ImageResource& image, const SurfaceImm& imm, const SurfacePoint& point);

/// Formatted access: `values` are imm.count 32-bit words, floats for surfaces of floats. Missing channels of a store
/// are left alone, integers saturate.
void LoadFormatted(const ImageResource& image, const std::uint8_t* at, unsigned count, std::uint32_t* values);
void StoreFormatted(const ImageResource& image, std::uint8_t* at, unsigned count, const std::uint32_t* values);

/// Atomic for all threads of the host.
void ReduceSurface(const ImageResource& image, const SurfaceImm& imm, std::uint8_t* at, std::uint64_t value);

/// txq and suq. `level`: which level width, height and depth are asked of. A null pointer is an object that is not
/// there.
struct Sampler;
std::uint32_t QueryTexture(const TextureObject& texture, const Sampler& sampler, ImageQuery query, std::uint32_t level);
std::uint32_t QuerySurface(const SurfaceObject& surface, ImageQuery query);

}  // namespace gridloom::exec
