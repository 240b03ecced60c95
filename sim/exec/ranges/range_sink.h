// Range calls: what rewritten kernels say of the memory their CTAs will touch (SetRange of the pre-profiler) and have
// touched (ReleaseRange of the post-profiler), after section 4.2 of the CRCS and PPCS paper (docs/ranges.md).
#pragma once

#include <cstdint>

#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

inline constexpr std::uint32_t kRangeRead = 1, kRangeWrite = 2;

/// `count` pieces of `width` bytes, `stride` bytes from each other. A plain range is one piece.
struct RangeCall {
  RangeOp op = RangeOp::kSet;
  std::uint64_t cta_index = 0;  ///< linear, x fastest
  std::uint32_t warp = 0;       ///< of the CTA
  std::uint32_t lane = 0;
  std::uint64_t array = 0;  ///< an address in the allocation that is meant
  std::uint64_t base = 0;
  std::uint64_t stride = 0;
  std::uint64_t count = 1;
  std::uint64_t width = 0;
  std::uint32_t flags = 0;  ///< kRangeRead, kRangeWrite
};

class RangeSink {
 public:
  virtual ~RangeSink() = default;
  /// Called from several host threads at once. Numbers come from the kernel: anything is possible.
  virtual void OnRange(const RangeCall& call) = 0;
};

}  // namespace gridloom::exec
