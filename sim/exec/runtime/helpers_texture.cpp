// tex, tld4, txq and istypep: operands of a warp, grouped by the object they name. What they compute is in
// sim/exec/image.
#include "sim/exec/image/sample.h"
#include "sim/exec/image/surface.h"
#include "sim/exec/runtime/image_access.h"

namespace gridloom::exec {
namespace {

/// Operands of a tex or tld4, in the order TextureImm describes.
struct TextureOperands {
  const std::uint64_t* textures = nullptr;
  const std::uint64_t* samplers = nullptr;
  TextureFetch fetch;
  WordLanes* out[4] = {};
};

/// The operands behind those that are written.
void ReadInputs(const TextureImm& imm, Arguments& next, TextureOperands& operands) {
  TextureFetch& fetch = operands.fetch;
  operands.textures = next.Take<const std::uint64_t>();
  if (imm.sampler == SamplerSource::kOperand) operands.samplers = next.Take<const std::uint64_t>();
  fetch.geometry = imm.geometry;
  fetch.lod_mode = imm.lod;
  fetch.is_float = imm.float_coordinates;
  if (IsLayered(imm.geometry)) fetch.layer = next.Take<const std::uint32_t>();
  const unsigned axes = CoordinateCount(imm.geometry);
  for (unsigned axis = 0; axis < axes; ++axis) {
    if (imm.float_coordinates) fetch.coordinate[axis] = next.Take<const float>();
    else fetch.index[axis] = next.Take<const std::int32_t>();
  }
  if (imm.lod == LodMode::kLevel) {
    if (imm.float_coordinates) fetch.lod = next.Take<const float>();
    else fetch.level = next.Take<const std::int32_t>();
  } else if (imm.lod == LodMode::kGradient) {
    for (unsigned axis = 0; axis < axes; ++axis) fetch.dx[axis] = next.Take<const float>();
    for (unsigned axis = 0; axis < axes; ++axis) fetch.dy[axis] = next.Take<const float>();
  }
  if (imm.has_offset) {
    for (unsigned axis = 0; axis < axes; ++axis) fetch.offset[axis] = next.Take<const std::int32_t>();
  }
}

TextureOperands ReadOperands(const TextureImm& imm, void* const* args) {
  Arguments next(args);
  TextureOperands operands;
  for (WordLanes*& channel : operands.out) channel = next.Take<WordLanes>();
  ReadInputs(imm, next, operands);
  return operands;
}

/// A .samplerref variable holds the handle of a texture object whose sampler it stands for, or settings of its own.
Sampler ReadSampler(Warp& warp, const TextureImm& imm, const TextureObject& texture, const TextureOperands& operands,
                    std::uint32_t lane, std::uint32_t line) {
  if (imm.sampler == SamplerSource::kOperand) return SamplerOf(TextureOf(warp, lane, line, operands.samplers[lane]));
  Sampler sampler = SamplerOf(texture);
  if (imm.sampler == SamplerSource::kSettings) ApplySettings(imm.settings, sampler);
  return sampler;
}

/// Calls visit(texture, sampler, lanes) for every texture that lanes of the mask name.
template <typename F>
void ForEachTexture(Warp& warp, const TextureImm& imm, const TextureOperands& operands, std::uint32_t mask,
                    std::uint32_t line, F&& visit) {
  LaneAccess access(warp, line);
  ForEachValue(mask, operands.textures, [&](std::uint32_t lane, std::uint32_t lanes) {
    access.At(lane);
    const TextureObject& texture = TextureOf(warp, lane, line, operands.textures[lane]);
    visit(texture, ReadSampler(warp, imm, texture, operands, lane, line), lanes);
  });
}

/// Calls fetch(texture, sampler, lanes, texels), and hands out the texels.
template <typename F>
void FetchEach(Warp& warp, const TextureImm& imm, const TextureOperands& operands, std::uint32_t mask,
               std::uint32_t line, F&& fetch) {
  ForEachTexture(
      warp, imm, operands, mask, line, [&](const TextureObject& texture, const Sampler& sampler, std::uint32_t lanes) {
        Texels texels;
        fetch(texture, sampler, lanes, texels);
        for (unsigned channel = 0; channel < 4; ++channel) {
          ForEachLane(lanes, [&](std::uint32_t at) { (*operands.out[channel])[at] = texels.channel[channel][at]; });
        }
      });
}

}  // namespace

void Helper_kTexture(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  const auto instruction = UnpackImm<TextureImm>(imm);
  const TextureOperands operands = ReadOperands(instruction, args);
  FetchEach(WarpOf(ctx), instruction, operands, mask, line,
            [&](const TextureObject& texture, const Sampler& sampler, std::uint32_t lanes, Texels& out) {
              SampleTexture(texture, sampler, operands.fetch, lanes, out);
            });
}

void Helper_kTextureGather(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  const auto instruction = UnpackImm<TextureImm>(imm);
  const TextureOperands operands = ReadOperands(instruction, args);
  FetchEach(WarpOf(ctx), instruction, operands, mask, line,
            [&](const TextureObject& texture, const Sampler& sampler, std::uint32_t lanes, Texels& out) {
              GatherTexture(texture, sampler, operands.fetch, instruction.component, lanes, out);
            });
}

void Helper_kTextureAddress(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm,
                            void* const* args) {
  const auto instruction = UnpackImm<TextureImm>(imm);
  Arguments next(args);
  auto* const out = next.Take<std::uint64_t>();
  TextureOperands operands;
  ReadInputs(instruction, next, operands);
  ForEachTexture(WarpOf(ctx), instruction, operands, mask, line,
                 [&](const TextureObject& texture, const Sampler& sampler, std::uint32_t lanes) {
                   TexelAddresses(texture, sampler, operands.fetch, instruction.gather, lanes, out);
                 });
}

void Helper_kImageQuery(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const auto query = UnpackImm<ImageQueryImm>(imm);
  Arguments next(args);
  auto* const out = next.Take<std::uint32_t>();
  const auto* const handles = next.Take<const std::uint64_t>();
  const auto* const levels = query.has_level ? next.Take<const std::uint32_t>() : nullptr;
  LaneAccess access(warp, line);
  ForEachLane(mask, [&](std::uint32_t lane) {
    access.At(lane);
    if (query.query == ImageQuery::kIsTexture || query.query == ImageQuery::kIsSurface) {
      // Any number may be asked about, also by lanes that a guard turns off.
      const bool in_range =
          handles[lane] - ServicesOf(warp).memory->range_base() < ServicesOf(warp).memory->range_bytes();
      if (in_range && !ServicesOf(warp).memory->Accessible(handles[lane], 8, false)) {
        out[lane] = 0;
        return;
      }
      const std::uint64_t handle = ResolveHandle(warp, handles[lane]);
      out[lane] = query.query == ImageQuery::kIsTexture ? ImageTable::Get().FindTexture(handle) != nullptr
                                                        : ImageTable::Get().FindSurface(handle) != nullptr;
    } else if (query.surface) {
      out[lane] = QuerySurface(SurfaceOf(warp, lane, line, handles[lane]), query.query);
    } else {
      const TextureObject& texture = TextureOf(warp, lane, line, handles[lane]);
      out[lane] = QueryTexture(texture, SamplerOf(texture), query.query, levels ? levels[lane] : 0);
    }
  });
}

}  // namespace gridloom::exec
