// tex and tld4 for a warp (PTX ISA, 9.7.10): level of detail, layers and cube faces, then taps and texels.
#pragma once

#include <cstdint>

#include "sim/exec/contract/image_immediates.h"
#include "sim/exec/image/fetch.h"
#include "sim/exec/image/taps.h"
#include "sim/exec/texture.h"

namespace gridloom::exec {

/// Operands of one instruction; every pointer is to 32 lanes.
struct TextureFetch {
  ImageGeometry geometry = ImageGeometry::k1d;
  LodMode lod_mode = LodMode::kBase;
  bool is_float = true;  ///< coordinates and level
  const std::uint32_t* layer = nullptr;
  const float* coordinate[3] = {nullptr, nullptr, nullptr};    ///< when is_float
  const std::int32_t* index[3] = {nullptr, nullptr, nullptr};  ///< otherwise
  const float* lod = nullptr;
  const std::int32_t* level = nullptr;
  const float* dx[3] = {nullptr, nullptr, nullptr};
  const float* dy[3] = {nullptr, nullptr, nullptr};
  const std::int32_t* offset[3] = {nullptr, nullptr, nullptr};
};

Sampler SamplerOf(const TextureObject& texture);
/// Settings of a .samplerref initialiser, as SamplerSettings packs them.
void ApplySettings(std::uint8_t settings, Sampler& sampler);

void SampleTexture(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, std::uint32_t mask,
                   Texels& out);
void GatherTexture(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, unsigned component,
                   std::uint32_t mask, Texels& out);
/// Where the lanes' texels lie: of those that one fetch filters, the first one of the finer level. `gather`: of tld4.
void TexelAddresses(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, bool gather,
                    std::uint32_t mask, std::uint64_t* out);

}  // namespace gridloom::exec
