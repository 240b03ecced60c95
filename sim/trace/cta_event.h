// What a CTA did besides memory accesses that the timing model's parts may want to know of, and when: launches of
// kernels, ranges of memory that it said it will touch or has touched. Kinds and the meaning of their numbers are the
// table event_kinds.def.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gridloom::trace {

enum class EventKind : std::uint8_t {
#define TRACE_EVENT_KIND(enumerator, name, flags, data0, data1, data2, data3) enumerator,
#include "sim/trace/event_kinds.def"
#undef TRACE_EVENT_KIND
};
inline constexpr std::string_view kEventKindNames[] = {
#define TRACE_EVENT_KIND(enumerator, name, flags, data0, data1, data2, data3) name,
#include "sim/trace/event_kinds.def"
#undef TRACE_EVENT_KIND
};
inline constexpr std::size_t kEventKindCount = std::size(kEventKindNames);

/// Flags of EventKind::kDeviceLaunch. Without one of these, the kernel begins after those that the CTA has launched
/// before it in the same stream.
enum LaunchFlag : std::uint8_t {
  kTailLaunch = 1 << 0,     ///< it begins when the launching kernel and all others that it has launched have ended
  kFireAndForget = 1 << 1,  ///< it begins at once
  kDefaultStream = 1 << 2,  ///< it is in the block's default stream
  kAggregated = 1 << 3,  ///< its blocks may join any kernel of the same code and block shape (docs/device-launches.md)
};
/// Flags of EventKind::kSetRange and kReleaseRange: what the CTA does with the bytes.
enum RangeFlag : std::uint8_t { kRangeRead = 1 << 0, kRangeWrite = 1 << 1 };

/// Something that an instruction did while a warp executed it. Those of a CTA are sorted by warp, block visit and
/// instruction; those of one execution of an instruction are in the order in which it did them.
struct CtaEvent {
  EventKind kind = EventKind::kDeviceLaunch;
  std::uint8_t flags = 0;               ///< by kind
  std::uint32_t warp = 0;               ///< of the CTA
  std::uint32_t visit = 0;              ///< of the warp, from 0: WarpTrace::first_visit is to be added
  std::uint32_t instruction = 0;        ///< of KernelCode::instructions, in the block that is visited
  std::uint32_t lanes = 0;              ///< on whose behalf: some of the visit's mask
  std::array<std::uint64_t, 4> data{};  ///< by kind (event_kinds.def)

  bool operator==(const CtaEvent&) const = default;
};

}  // namespace gridloom::trace
