// Cubemaps (CUDA C++ Programming Guide, "Cubemap Textures"): the largest of three coordinates chooses a face, the other
// two divided by it are coordinates on that face.
#pragma once

#include <cstdint>

#include "sim/exec/image/taps.h"

namespace gridloom::exec {

template <typename T>
struct CubePoint {
  unsigned face = 0;  ///< +X -X +Y -Y +Z -Z
  T s{}, t{}, m{};    ///< on the face: s / m and t / m, in [-1, 1]; m >= 0
};

/// Ties go to x before y before z.
template <typename T>
CubePoint<T> ProjectCube(T x, T y, T z) {
  const T ax = x < 0 ? -x : x, ay = y < 0 ? -y : y, az = z < 0 ? -z : z;
  if (ax >= ay && ax >= az) return x < 0 ? CubePoint<T>{1, z, -y, ax} : CubePoint<T>{0, -z, -y, ax};
  if (ay >= az) return y < 0 ? CubePoint<T>{3, x, -z, ay} : CubePoint<T>{2, x, z, ay};
  return z < 0 ? CubePoint<T>{5, -x, -y, az} : CubePoint<T>{4, x, -y, az};
}

/// A direction that ProjectCube takes to that point: the inverse, for any s and t.
template <typename T>
struct CubeDirection {
  T x{}, y{}, z{};
};
template <typename T>
CubeDirection<T> DirectionOf(const CubePoint<T>& p) {
  switch (p.face) {
    case 0: return {p.m, -p.t, -p.s};
    case 1: return {-p.m, -p.t, p.s};
    case 2: return {p.s, p.m, p.t};
    case 3: return {p.s, -p.m, -p.t};
    case 4: return {p.s, -p.t, p.m};
    default: return {-p.s, -p.t, -p.m};
  }
}

/// Face, and s and t in [0, 1], for all lanes.
struct CubeLanes {
  IntLanes face;
  FloatLanes s, t;
};
void ProjectLanes(const float* x, const float* y, const float* z, CubeLanes& out);

/// Bilinear taps that go on to the neighbouring faces beyond an edge; at a corner the three texels that meet there
/// share the weight of the missing fourth. `slice` holds 6 * layer + face.
void FindSeamlessTaps(const ImageLevel& level, std::uint32_t texel_bytes, const CubeLanes& point, const IntLanes& slice,
                      Taps& out);

}  // namespace gridloom::exec
