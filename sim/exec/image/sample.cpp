#include "sim/exec/image/sample.h"

#include <algorithm>
#include <bit>

#include "sim/exec/image/cube.h"
#include "sim/exec/image/lod.h"

namespace gridloom::exec {
namespace {

/// One instruction with its layers and cube faces resolved.
struct Request {
  const TextureObject& texture;
  const Sampler& sampler;
  TexelFormat format;
  Coordinates coordinates;
  bool has_slice = false;
  IntLanes slice;
  CubeLanes cube;
  bool seamless = false;
};

void ResolveSlices(const TextureFetch& fetch, Request& request) {
  const bool cube = IsCube(fetch.geometry);
  if (!cube && fetch.layer == nullptr) return;
  request.has_slice = true;
  const std::uint32_t per_layer = cube ? 6 : 1;
  const std::uint32_t layers = std::max(request.texture.image.levels[0].depth / per_layer, 1u);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::uint32_t layer = fetch.layer ? std::min(fetch.layer[lane], layers - 1) : 0;
    const std::uint32_t slice = layer * per_layer + (cube ? static_cast<std::uint32_t>(request.cube.face[lane]) : 0);
    request.slice[lane] = static_cast<std::int32_t>(std::min(slice, request.texture.image.levels[0].depth - 1));
  }
}

/// Axes beyond those of the image are not looked at.
void ResolveCoordinates(const TextureFetch& fetch, Request& request) {
  Coordinates& to = request.coordinates;
  to.is_float = fetch.is_float;
  if (IsCube(fetch.geometry)) {
    ProjectLanes(fetch.coordinate[0], fetch.coordinate[1], fetch.coordinate[2], request.cube);
    to.axes = 2;
    to.value[0] = request.cube.s.lane;
    to.value[1] = request.cube.t.lane;
    request.seamless = request.sampler.seamless_cubemap && request.sampler.filter == FilterMode::kLinear &&
                       request.texture.image.cubemap;
    return;
  }
  to.axes = std::min<unsigned>(CoordinateCount(fetch.geometry), request.texture.image.dims);
  for (unsigned axis = 0; axis < to.axes; ++axis) {
    to.value[axis] = fetch.coordinate[axis];
    to.integer[axis] = fetch.index[axis];
    to.offset[axis] = fetch.offset[axis];
  }
}

void Prepare(const TextureFetch& fetch, Request& request) {
  ResolveCoordinates(fetch, request);
  ResolveSlices(fetch, request);
}

void FindLevelTaps(const Request& request, const ImageLevel& level, Taps& taps) {
  const std::uint32_t texel_bytes = request.texture.image.texel_bytes();
  if (request.seamless) return FindSeamlessTaps(level, texel_bytes, request.cube, request.slice, taps);
  const bool linear_memory = request.texture.image.kind == ImageResource::Kind::kLinear;
  FindTaps(level, texel_bytes, request.sampler, request.coordinates, request.has_slice ? &request.slice : nullptr,
           linear_memory, taps);
}

void SampleLevel(const Request& request, std::int32_t number, std::uint32_t mask, Texels& out) {
  const ImageLevel& level = request.texture.image.levels[number];
  Taps taps;
  FindLevelTaps(request, level, taps);
  FetchTaps(reinterpret_cast<const std::uint8_t*>(level.base), request.format, taps, mask, out);
}

/// Every level that some lane reads is sampled once, for the lanes that read it.
void SampleLevels(const Request& request, const LevelChoice& choice, std::uint32_t mask, Texels& out) {
  const std::int32_t last = request.texture.image.level_count - 1;
  while (mask != 0) {
    const std::int32_t number = choice.level[static_cast<unsigned>(std::countr_zero(mask))];
    std::uint32_t group = 0, blended = 0;
    ForEachActive(mask, [&](unsigned lane) {
      if (choice.level[lane] != number) return;
      group |= 1u << lane;
      if (choice.weight[lane] != 0) blended |= 1u << lane;
    });
    SampleLevel(request, number, group, out);
    if (blended != 0 && number < last && request.format.is_float()) {
      Texels coarse{};
      SampleLevel(request, number + 1, blended, coarse);
      for (unsigned channel = 0; channel < 4; ++channel) {
        ForEachActive(blended, [&](unsigned lane) {
          const float weight = choice.weight[lane];
          std::uint32_t& bits = out.channel[channel][lane];
          const float fine = std::bit_cast<float>(bits);
          bits = std::bit_cast<std::uint32_t>((1.0f - weight) * fine +
                                              weight * std::bit_cast<float>(coarse.channel[channel][lane]));
        });
      }
    }
    mask &= ~group;
  }
}

/// The mean of `samples` fetches spread evenly over the longer axis of the footprint.
void SampleAnisotropic(Request& request, const Footprint& footprint, const LevelChoice& choice, std::uint32_t mask,
                       Texels& out) {
  const float* const centre[2] = {request.coordinates.value[0], request.coordinates.value[1]};
  FloatLanes moved[2];
  FloatLanes sum[4]{};
  for (std::int32_t i = 0; i < 16; ++i) {
    std::uint32_t active = 0;
    ForEachActive(mask, [&](unsigned lane) { active |= footprint.samples[lane] > i ? 1u << lane : 0; });
    if (active == 0) break;
    for (unsigned axis = 0; axis < 2; ++axis) {
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const float along = (static_cast<float>(i) + 0.5f) / static_cast<float>(footprint.samples[lane]) - 0.5f;
        moved[axis][lane] = centre[axis][lane] + footprint.step[axis][lane] * along;
      }
      request.coordinates.value[axis] = moved[axis].lane;
    }
    Texels texels;
    SampleLevels(request, choice, active, texels);
    for (unsigned channel = 0; channel < 4; ++channel) {
      ForEachActive(active,
                    [&](unsigned lane) { sum[channel][lane] += std::bit_cast<float>(texels.channel[channel][lane]); });
    }
  }
  for (unsigned channel = 0; channel < 4; ++channel) {
    ForEachActive(mask, [&](unsigned lane) {
      out.channel[channel][lane] =
          std::bit_cast<std::uint32_t>(sum[channel][lane] / static_cast<float>(footprint.samples[lane]));
    });
  }
}

void SampleGradient(Request& request, const TextureFetch& fetch, std::uint32_t mask, Texels& out) {
  Footprint footprint;
  LevelChoice choice;
  FindFootprint(request.texture, request.sampler, fetch, footprint);
  ChooseLevels(request.texture, request.sampler, footprint.lod, choice);
  bool several = false;
  ForEachActive(mask, [&](unsigned lane) { several |= footprint.samples[lane] > 1; });
  if (several && request.coordinates.axes == 2 && request.format.is_float())
    return SampleAnisotropic(request, footprint, choice, mask, out);
  SampleLevels(request, choice, mask, out);
}

/// Integers that arrive as they are are filtered within a level. The Programming Guide leaves open what a device does
/// between levels.
Sampler Effective(const Sampler& sampler, const TexelFormat& format) {
  Sampler effective = sampler;
  if (format.is_float()) return effective;
  effective.mip_filter = FilterMode::kPoint;
  return effective;
}

/// Coordinates on a cube's face are fractions of it whatever the sampler says.
Sampler ForGeometry(Sampler sampler, ImageGeometry geometry) {
  if (IsCube(geometry)) sampler.normalized = true;
  return sampler;
}

}  // namespace

Sampler SamplerOf(const TextureObject& texture) {
  Sampler sampler;
  std::copy_n(texture.address, 3, sampler.address);
  sampler.filter = texture.filter;
  sampler.mip_filter = texture.mip_filter;
  sampler.normalized = texture.normalized_coordinates;
  sampler.seamless_cubemap = texture.seamless_cubemap;
  sampler.lod_bias = texture.lod_bias;
  sampler.min_lod = texture.min_lod;
  sampler.max_lod = texture.max_lod;
  sampler.max_anisotropy = texture.max_anisotropy;
  return sampler;
}

void ApplySettings(std::uint8_t settings, Sampler& sampler) {
  for (unsigned axis = 0; axis < 3; ++axis) sampler.address[axis] = static_cast<AddressMode>(settings >> 2 * axis & 3);
  sampler.filter = settings & 64 ? FilterMode::kLinear : FilterMode::kPoint;
  if (settings & 128) sampler.normalized = false;
}

void SampleTexture(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, std::uint32_t mask,
                   Texels& out) {
  const TexelFormat format = FormatOf(texture);
  const Sampler effective = ForGeometry(Effective(sampler, format), fetch.geometry);
  Request request{
      .texture = texture, .sampler = effective, .format = format, .coordinates = {}, .slice = {}, .cube = {}};
  Prepare(fetch, request);
  if (fetch.lod_mode == LodMode::kGradient) return SampleGradient(request, fetch, mask, out);
  if (fetch.lod_mode == LodMode::kBase || texture.image.level_count == 1) return SampleLevel(request, 0, mask, out);
  LevelChoice choice;
  ChooseExplicit(texture, effective, fetch, choice);
  SampleLevels(request, choice, mask, out);
}

void GatherTexture(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, unsigned component,
                   std::uint32_t mask, Texels& out) {
  // The footprint is that of a bilinear fetch, whatever filter the sampler has.
  Sampler linear = ForGeometry(sampler, fetch.geometry);
  linear.filter = FilterMode::kLinear;
  Request request{
      .texture = texture, .sampler = linear, .format = FormatOf(texture), .coordinates = {}, .slice = {}, .cube = {}};
  Prepare(fetch, request);
  if (request.coordinates.axes < 2) {
    // A one-dimensional image has no footprint of four; its only row stands for both.
    request.coordinates.axes = 2;
    request.coordinates.value[1] = fetch.coordinate[1];
    request.coordinates.offset[1] = fetch.offset[1];
  }
  const ImageLevel& level = texture.image.levels[0];
  Taps taps;
  FindLevelTaps(request, level, taps);
  GatherTaps(reinterpret_cast<const std::uint8_t*>(level.base), request.format, taps, component, mask, out);
}

void TexelAddresses(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, bool gather,
                    std::uint32_t mask, std::uint64_t* out) {
  const TexelFormat format = FormatOf(texture);
  Sampler effective = ForGeometry(Effective(sampler, format), fetch.geometry);
  if (gather) effective.filter = FilterMode::kLinear;
  Request request{
      .texture = texture, .sampler = effective, .format = format, .coordinates = {}, .slice = {}, .cube = {}};
  Prepare(fetch, request);
  LevelChoice choice{};
  if (fetch.lod_mode == LodMode::kGradient) {
    Footprint footprint;
    FindFootprint(texture, effective, fetch, footprint);
    ChooseLevels(texture, effective, footprint.lod, choice);
  } else if (fetch.lod_mode == LodMode::kLevel && texture.image.level_count > 1) {
    ChooseExplicit(texture, effective, fetch, choice);
  }
  while (mask != 0) {
    const std::int32_t number = choice.level[static_cast<unsigned>(std::countr_zero(mask))];
    const ImageLevel& level = texture.image.levels[number];
    Taps taps;
    FindLevelTaps(request, level, taps);
    std::uint32_t group = 0;
    ForEachActive(mask, [&](unsigned lane) {
      if (choice.level[lane] != number) return;
      group |= 1u << lane;
      out[lane] = level.base + static_cast<std::uint64_t>(taps.offset[0][lane]);
    });
    mask &= ~group;
  }
}

}  // namespace gridloom::exec
