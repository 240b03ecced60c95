#include "sim/exec/ranges/range_pieces.h"

#include <algorithm>

namespace gridloom::exec {

RangePieces ClipRange(const RangeCall& call, std::uint64_t low, std::uint64_t high) {
  using Wide = unsigned __int128;
  if (call.width == 0 || call.count == 0) return {};
  if (call.count == 1 || call.stride <= call.width) {
    const Wide end = Wide{call.count - 1} * call.stride + call.base + call.width;
    const std::uint64_t from = std::max(call.base, low), to = static_cast<std::uint64_t>(std::min<Wide>(end, high));
    if (from >= to) return {};
    return {from, to - from, 0, 1};
  }
  // Pieces do not overlap here: the first one that ends above `low`, and the first that begins at `high` or above.
  const Wide end_of_first = Wide{call.base} + call.width;
  const std::uint64_t first =
      end_of_first > low ? 0 : static_cast<std::uint64_t>((low - end_of_first) / call.stride + 1);
  const std::uint64_t behind = call.base >= high ? 0 : (high - call.base - 1) / call.stride + 1;
  const std::uint64_t last = std::min(behind, call.count);
  if (first >= last) return {};
  return {call.base + first * call.stride, call.width, call.stride, last - first};
}

std::array<RangePieces, 3> CutRange(const RangeCall& call, std::uint64_t low, std::uint64_t high) {
  RangePieces inner = ClipRange(call, low, high), first, last;
  if (inner.count != 0 && inner.base < low) {
    const std::uint64_t below = low - inner.base;
    first = {low, std::min(inner.width - below, high - low), 0, 1};
    inner.base += inner.stride;
    --inner.count;
  }
  if (inner.count != 0) {
    const std::uint64_t at = inner.base + (inner.count - 1) * inner.stride;
    if (high - at < inner.width) {
      last = {at, high - at, 0, 1};
      --inner.count;
    }
  }
  if (inner.count == 1) inner.stride = 0;
  return {first, inner, last};
}

}  // namespace gridloom::exec
