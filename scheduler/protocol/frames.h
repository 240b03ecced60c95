// A tenant's channel to the timing model of a broker that simulates time (docs/broker.md): a stream socket, frames of a
// kind and so many bytes. What the bytes are is for the two ends to know: sim/trace/trace_records.h and
// sim/trace/cta_codec.h write and read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::protocol {

/// Works are numbered by the tenant from 1 without gaps, across kLaunch and kAction. "Varint" is trace::ByteWriter's.
enum class FrameKind : std::uint32_t {
  kCode = 1,  ///< trace::PutCode; codes are numbered from 0 in the order of their frames
  /// A byte: 1 when the kernel may launch others; trace::PutInfo of the launch; trace::PutAction of its work.
  kLaunch = 2,
  kAction = 3,      ///< trace::PutAction of a work that is no launch
  kCloseGroup = 4,  ///< Varint work: all works of the group have been said
  /// Varint work, count; Signed distance of each CTA's number from the last; what a CtaEncoder made of them.
  kCtas = 5,
  kEndLaunch = 6,  ///< Varint work: no more CTAs of it come
  kWait = 7,       ///< Varint question, count, works: the host waits for them; answered when they have ended
  kAsk = 8,        ///< likewise: whether they have ended at the host's time
  kEnd = 9,        ///< Varint question, work: when it ended
  kFinish = 10,    ///< Varint question: the host gives no more; answered when all it gave has ended

  kAnswer = 32,  ///< broker: Varint question, a byte (FrameAnswer), double: ns of kEnd; of kFinish: what the program
                 ///< took, and a timing::KernelTable
};

enum class FrameAnswer : std::uint8_t { kNo, kYes, kUnknown };

/// No frame is larger. The trace of one CTA that would be is left out.
inline constexpr std::size_t kMaxFrameBytes = 64u << 20;
/// Nor may a trace take more memory once it is unpacked: loops take few bytes of a frame, however often they are gone
/// round.
inline constexpr std::size_t kMaxCtaBytes = 128u << 20;

struct Frame {
  FrameKind kind = FrameKind::kCode;
  std::vector<std::uint8_t> bytes;
};

/// A connected pair: ours and the tenant's end.
Result<std::pair<Fd, Fd>> MakeChannel();

/// Waits until it is on its way. False when the other side is gone. One thread at a time.
bool SendFrame(int fd, FrameKind kind, std::span<const std::uint8_t> bytes);

/// The frame's bytes as they are sent.
std::vector<std::uint8_t> FrameBytes(FrameKind kind, std::span<const std::uint8_t> bytes);

/// Waits for the next one; nothing when the other side has gone. An error when it is too large or of no kind, or when
/// `take`, which is asked before memory for so many further bytes is taken, says no.
Result<std::optional<Frame>> ReceiveFrame(int fd, const std::function<bool(std::size_t bytes)>& take = {});

}  // namespace gridloom::protocol
