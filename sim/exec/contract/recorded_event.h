// Records of what instructions do besides accesses (records.h): launches of kernels, range calls. The runtime's helpers
// write them, not the compiled code, which has its place in the buffer where they find it around calls of such helpers
// only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/exec/contract/records.h"

namespace gridloom::exec {

/// The kind of their headers. In a buffer it stands for nothing else: kAffine is only what RecordReader calls accesses
/// of a group.
inline constexpr RecordKind kEventRecord = RecordKind::kAffine;

/// Behind the header, which has the lanes and the instruction, a word with kind and flags, then the data.
struct RecordedEvent {
  enum Kind : std::uint8_t { kDeviceLaunch, kSetRange, kReleaseRange, kStreamCreate };
  static constexpr std::uint8_t kTailLaunch = 1, kFireAndForget = 2, kDefaultStream = 4, kAggregated = 8;
  static constexpr std::uint32_t kWords = 6;
  Kind kind = kDeviceLaunch;
  std::uint8_t flags = 0;  ///< kTailLaunch to kAggregated, or kRangeRead and kRangeWrite
  /// Number of the launch (GridChildren::Launch), CTAs, threads per CTA, bytes of parameters; or RangePieces: first
  /// byte, bytes of a piece, bytes from one piece to the next, pieces.
  std::array<std::uint64_t, 4> data{};

  void Put(std::uint32_t lanes, std::uint32_t instruction, std::uint64_t* at) const {
    at[0] = RecordHeader{.mask = lanes, .kind = kEventRecord, .instruction = instruction}.Pack();
    at[1] = kind | std::uint64_t{flags} << 8;
    for (std::size_t i = 0; i < data.size(); ++i) at[2 + i] = data[i];
  }
  /// The event of a record that begins at `at`.
  static RecordedEvent At(const std::uint64_t* at) {
    RecordedEvent event{static_cast<Kind>(at[1]), static_cast<std::uint8_t>(at[1] >> 8)};
    for (std::size_t i = 0; i < event.data.size(); ++i) event.data[i] = at[2 + i];
    return event;
  }
};

/// Whether a runtime helper called with `imm` may write such records. Where all is recorded, the bits of `imm` from
/// kEventInstructionShift on are then the number of the instruction.
constexpr bool MayRecordEvents(Helper helper, std::uint64_t imm) {
  const auto call = static_cast<DeviceCall>(imm & 0xff);
  return helper == Helper::kRange ||
         (helper == Helper::kDeviceRuntime &&
          (call == DeviceCall::kLaunchDevice || call == DeviceCall::kLaunchDeviceV2 ||
           call == DeviceCall::kLaunchGroup || call == DeviceCall::kLaunchDeviceV2PerThread ||
           call == DeviceCall::kLaunchGroupV2 || call == DeviceCall::kStreamCreate));
}
inline constexpr unsigned kEventInstructionShift = 32;

}  // namespace gridloom::exec
