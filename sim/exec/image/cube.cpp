#include "sim/exec/image/cube.h"

#include <algorithm>
#include <cmath>

namespace gridloom::exec {
namespace {

struct CubeTexel {
  unsigned face;
  std::int64_t i, j;
};

/// The texel next to an edge: (i, j) is one step outside of the face in one direction. In units of half a texel the
/// centre lies at (2i + 1 - n, 2j + 1 - n) on a cube of half side n, so all is exact in integers.
CubeTexel AcrossEdge(unsigned face, std::int64_t i, std::int64_t j, std::int64_t n) {
  const auto direction = DirectionOf(CubePoint<std::int64_t>{face, 2 * i + 1 - n, 2 * j + 1 - n, n});
  const auto there = ProjectCube(direction.x, direction.y, direction.z);
  return {there.face, (there.s + there.m) * n / (2 * there.m), (there.t + there.m) * n / (2 * there.m)};
}

void FindLaneTaps(const ImageLevel& level, std::uint32_t texel_bytes, float s, float t, std::int32_t slice,
                  unsigned lane, Taps& out) {
  const std::int64_t n = level.width;
  const auto fixed = [n](float x) {
    return static_cast<std::int64_t>(std::nearbyint((x * static_cast<float>(n) - 0.5f) * 256.0f));
  };
  const std::int64_t u = fixed(s), v = fixed(t);
  const std::int64_t i = u >> 8, j = v >> 8;
  const float a = static_cast<float>(u & 255) / 256.0f, b = static_cast<float>(v & 255) / 256.0f;
  const float weight[4] = {(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b};
  const auto face = static_cast<unsigned>(slice % 6);
  const std::int32_t first_face = slice - static_cast<std::int32_t>(face);
  int corner = -1;
  for (unsigned tap = 0; tap < 4; ++tap) {
    CubeTexel texel{face, i + (tap & 1), j + (tap >> 1)};
    const bool outside_i = texel.i < 0 || texel.i >= n, outside_j = texel.j < 0 || texel.j >= n;
    if (outside_i && outside_j) {
      corner = static_cast<int>(tap);
      texel = {face, std::clamp<std::int64_t>(texel.i, 0, n - 1), std::clamp<std::int64_t>(texel.j, 0, n - 1)};
    } else if (outside_i || outside_j) {
      texel = AcrossEdge(face, texel.i, texel.j, n);
    }
    const std::int64_t z = std::min<std::int64_t>(first_face + static_cast<std::int64_t>(texel.face), level.depth - 1);
    const std::int64_t row = std::min<std::int64_t>(texel.j, level.height - 1);
    out.offset[tap][lane] = z * static_cast<std::int64_t>(level.slice_bytes) +
                            row * static_cast<std::int64_t>(level.row_bytes) + texel.i * texel_bytes;
    out.weight[tap][lane] = weight[tap];
  }
  if (corner < 0) return;
  const float share = weight[corner] / 3.0f;
  for (int tap = 0; tap < 4; ++tap) out.weight[tap][lane] = tap == corner ? 0.0f : weight[tap] + share;
}

}  // namespace

void ProjectLanes(const float* x, const float* y, const float* z, CubeLanes& out) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const auto defined = [](float v) { return v == v ? v : 0.0f; };
    const CubePoint<float> point = ProjectCube(defined(x[lane]), defined(y[lane]), defined(z[lane]));
    const auto unit = [&](float v) { return std::clamp((defined(v / point.m) + 1.0f) * 0.5f, 0.0f, 1.0f); };
    out.face[lane] = static_cast<std::int32_t>(point.face);
    out.s[lane] = unit(point.s);
    out.t[lane] = unit(point.t);
  }
}

void FindSeamlessTaps(const ImageLevel& level, std::uint32_t texel_bytes, const CubeLanes& point, const IntLanes& slice,
                      Taps& out) {
  out.count = 4;
  out.weighted = true;
  out.border = false;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    FindLaneTaps(level, texel_bytes, point.s[lane], point.t[lane], slice[lane], lane, out);
}

}  // namespace gridloom::exec
