// Values of the 32 lanes of a warp, structure of arrays. What lies in lanes that are off is never looked at by a
// program, so everything is computed for all of them; loads stay inside the image whatever they hold.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sim/exec/contract/abi.h"
#include "sim/exec/simd.h"

namespace gridloom::exec {

template <typename T>
struct alignas(64) LaneArray {
  T lane[kWarpSize];
  T& operator[](unsigned i) { return lane[i]; }
  const T& operator[](unsigned i) const { return lane[i]; }
};
using FloatLanes = LaneArray<float>;
using IntLanes = LaneArray<std::int32_t>;
using WordLanes = LaneArray<std::uint32_t>;
using OffsetLanes = LaneArray<std::int64_t>;

template <typename F>
GL_INLINE void ForEachActive(std::uint32_t mask, F&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(std::countr_zero(mask)));
}

}  // namespace gridloom::exec
