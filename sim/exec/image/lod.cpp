#include "sim/exec/image/lod.h"

#include <algorithm>
#include <cmath>

#include "sim/exec/image/cube.h"

namespace gridloom::exec {
namespace {

float Length(const float (&v)[3]) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

/// Derivatives on the face of a cube, by the quotient rule, as fractions of the face.
void ProjectDerivative(const TextureFetch& fetch, unsigned lane, const float* const (&derivative)[3], float (&out)[3]) {
  const float x = fetch.coordinate[0][lane], y = fetch.coordinate[1][lane], z = fetch.coordinate[2][lane];
  const CubePoint<float> p = ProjectCube(x, y, z);
  // ProjectCube is linear on a face, so applied to a vector it must use the face of the point, not its own.
  const float dx = derivative[0][lane], dy = derivative[1][lane], dz = derivative[2][lane];
  const CubePoint<float> d[6] = {{0, -dz, -dy, dx}, {1, dz, -dy, -dx}, {2, dx, dz, dy},
                                 {3, dx, -dz, -dy}, {4, dx, -dy, dz},  {5, -dx, -dy, -dz}};
  const CubePoint<float>& q = d[p.face];
  const float square = 2.0f * p.m * p.m;
  out[0] = (q.s * p.m - p.s * q.m) / square;
  out[1] = (q.t * p.m - p.t * q.m) / square;
  out[2] = 0;
}

void ReadDerivative(const TextureFetch& fetch, unsigned lane, const float* const (&derivative)[3], float (&out)[3]) {
  if (IsCube(fetch.geometry)) return ProjectDerivative(fetch, lane, derivative, out);
  for (unsigned axis = 0; axis < 3; ++axis) out[axis] = derivative[axis] ? derivative[axis][lane] : 0.0f;
}

}  // namespace

void ChooseLevels(const TextureObject& texture, const Sampler& sampler, const FloatLanes& lod, LevelChoice& out) {
  const std::int32_t last = texture.image.level_count - 1;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    float detail = lod[lane] + sampler.lod_bias;
    if (!(detail > sampler.min_lod)) detail = sampler.min_lod;  // NaN, too
    if (detail > sampler.max_lod) detail = sampler.max_lod;
    detail = std::clamp(detail, 0.0f, static_cast<float>(last));
    if (sampler.mip_filter == FilterMode::kPoint) {
      out.level[lane] = std::min(static_cast<std::int32_t>(detail + 0.5f), last);
      out.weight[lane] = 0;
    } else {
      const auto fixed = static_cast<std::int32_t>(std::nearbyint(detail * 256.0f));
      out.level[lane] = fixed >> 8;
      out.weight[lane] = static_cast<float>(fixed & 255) / 256.0f;
    }
  }
}

void ChooseExplicit(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, LevelChoice& out) {
  if (fetch.is_float) {
    FloatLanes lod;
    std::copy_n(fetch.lod, kWarpSize, lod.lane);
    return ChooseLevels(texture, sampler, lod, out);
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    out.level[lane] = std::clamp(fetch.level[lane], 0, texture.image.level_count - 1);
    out.weight[lane] = 0;
  }
}

void FindFootprint(const TextureObject& texture, const Sampler& sampler, const TextureFetch& fetch, Footprint& out) {
  const ImageLevel& base = texture.image.levels[0];
  const std::uint32_t size[3] = {base.width, base.height, base.depth};
  const bool flat = fetch.geometry == ImageGeometry::k2d || fetch.geometry == ImageGeometry::kA2d;
  const bool anisotropic = sampler.max_anisotropy > 1 && sampler.filter == FilterMode::kLinear && flat;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    float d[2][3];
    ReadDerivative(fetch, lane, fetch.dx, d[0]);
    ReadDerivative(fetch, lane, fetch.dy, d[1]);
    float length[2];
    for (unsigned i = 0; i < 2; ++i) {
      float texels[3];
      for (unsigned axis = 0; axis < 3; ++axis)
        texels[axis] =
            sampler.normalized || IsCube(fetch.geometry) ? d[i][axis] * static_cast<float>(size[axis]) : d[i][axis];
      length[i] = Length(texels);
    }
    const unsigned longer = length[1] > length[0] ? 1 : 0;
    const float major = length[longer], minor = length[1 - longer];
    float samples = 1;
    if (anisotropic && major > 0 && major <= 3.0e38f) {
      const auto most = static_cast<float>(std::min(sampler.max_anisotropy, 16u));
      samples = minor * most > major ? std::ceil(major / minor) : most;
    }
    out.lod[lane] = std::log2(major / samples);
    out.samples[lane] = static_cast<std::int32_t>(samples);
    out.step[0][lane] = d[longer][0];
    out.step[1][lane] = d[longer][1];
  }
}

}  // namespace gridloom::exec
