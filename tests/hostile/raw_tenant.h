// A tenant that speaks the broker's protocol by hand: it may write whatever it likes into its ring, its socket and its
// channel to the timing model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/protocol/frames.h"
#include "scheduler/protocol/segment.h"
#include "scheduler/protocol/socket.h"
#include "sim/trace/byte_stream.h"
#include "sim/trace/trace_file.h"

namespace gridloom::hostile {

/// Records as the broker expects them, but for what the caller changes.
protocol::RawRecord LaunchRecord(std::uint32_t slot, std::uint64_t number, std::uint64_t ctas,
                                 std::uint64_t kernel = 1);
protocol::RawRecord RecordOf(protocol::RecordKind kind, std::uint32_t slot, std::uint64_t number, std::uint64_t value);

/// A connection without a word. Fails when there is none to be had.
protocol::Fd Connected(const std::string& socket);

class RawTenant {
 public:
  /// Fails when it is refused.
  RawTenant(const std::string& socket, const std::string& tenant);
  /// Nothing where the broker does not want it.
  static std::optional<RawTenant> Join(const std::string& socket, const std::string& tenant);

  protocol::SegmentLayout& layout() const { return segment_->layout(); }
  int socket() const { return socket_.get(); }
  int channel() const { return channel_.get(); }
  int doorbell() const { return doorbell_.get(); }
  void Ring() const;
  /// The next record, with its sequence number set; waits for a place in the ring. False: the broker takes none any
  /// more.
  bool Push(protocol::RawRecord record);
  /// As it is, sequence included.
  void PushAsIs(const protocol::RawRecord& record);
  std::uint64_t granted(std::uint32_t slot = 0) const { return layout().mailboxes[slot].granted.load(); }
  /// Waits for a grant beyond `done`; false when none comes.
  bool AwaitGrant(std::uint64_t done, std::uint32_t slot = 0, double seconds = 10) const;
  /// The broker says goodbye, then hangs up.
  bool Dropped(double seconds) const;

 private:
  RawTenant() = default;
  protocol::Fd socket_, doorbell_, channel_;
  std::optional<protocol::Segment> segment_;
  std::uint64_t pushed_ = 0;
};

/// A program at its end of the channel to the timing model.
class TimingTalk {
 public:
  explicit TimingTalk(int channel) : channel_(channel) {}
  bool Send(protocol::FrameKind kind, const trace::ByteWriter& content) const;
  /// Kernel 0: a loop of additions, in one basic block, of so many instructions.
  bool SayCode(std::uint32_t instructions = 1);
  trace::HostAction Action(trace::HostAction::Kind kind);
  bool Say(const trace::HostAction& action) const;
  /// Answers its work.
  std::uint64_t Launch(std::uint64_t ctas, std::uint32_t threads = 32);
  /// CTAs from 0 on, of one warp, each of which goes so often through the block; what is written for each is a few
  /// bytes.
  bool SayCtas(std::uint64_t work, std::uint64_t count, std::uint64_t visits);
  bool EndLaunch(std::uint64_t work);
  bool Ask(protocol::FrameKind kind, std::span<const std::uint64_t> works);
  /// The next answer has come: kYes.
  bool Answered() const;
  std::uint64_t works() const { return works_; }

 private:
  const int channel_;
  std::uint64_t works_ = 0, questions_ = 0;
};

}  // namespace gridloom::hostile
