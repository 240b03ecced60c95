// What of a range call lies in the allocation that it means.
#pragma once

#include <array>
#include <cstdint>

#include "sim/exec/ranges/range_sink.h"

namespace gridloom::exec {

/// `count` pieces of `width` bytes, `stride` bytes from each other. Plain ranges, and rows of pieces that leave nothing
/// between them, are one piece of stride 0. No pieces: nothing lies there.
struct RangePieces {
  std::uint64_t base = 0, width = 0, stride = 0, count = 0;
};
/// The pieces of a call that lie between `low` and `high` (exclusive), at least in part: one alone is cut off there, of
/// several the first and the last may stick out. Numbers of calls come from kernels and may be any.
RangePieces ClipRange(const RangeCall& call, std::uint64_t low, std::uint64_t high);
/// The pieces without what sticks out: the first and the last piece may become rows of their own, and some rows may
/// have no pieces. A page beside the allocation that two kernels named would make one wait for the other.
std::array<RangePieces, 3> CutRange(const RangeCall& call, std::uint64_t low, std::uint64_t high);

}  // namespace gridloom::exec
