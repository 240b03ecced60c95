// Streams of hosts, and the numbers that they have on the device. With the timeline's lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/timing/live/place.h"

namespace gridloom::timing {

class LiveStreams {
 public:
  /// Streams of one host that lie idle and keep their numbers. With more of them the number of one means another stream
  /// from then on.
  static constexpr std::size_t kIdle = 1024;

  /// The device's number of a stream of the host's.
  std::uint32_t NumberOf(HostId host, std::uint64_t name);
  /// Of a stream for one work of a group.
  std::uint32_t NumberForOne(HostId host);
  /// The device has got a work in the stream.
  void Begin(std::uint32_t number) { ++streams_.at(number).works; }
  /// A work of the stream has ended.
  void End(std::uint32_t number);
  /// Whose stream it is. Nothing: no host's; parts that launch kernels have streams of their own.
  std::optional<HostId> OwnerOf(std::uint32_t number) const;
  /// Lets go of the host's streams.
  void Forget(HostId host);
  std::size_t size() const { return streams_.size(); }

 private:
  struct Stream {
    HostId host = 0;
    bool of_one = false;
    std::uint64_t name = 0;   ///< the host's
    std::uint64_t works = 0;  ///< that the device has and that have not ended
    bool listed = false;      ///< in idle_
  };

  std::optional<std::uint32_t> TakeIdle(HostId host);
  std::uint32_t Add(Stream stream);

  std::map<std::pair<HostId, std::uint64_t>, std::uint32_t> numbers_;  ///< by host and name
  std::unordered_map<std::uint32_t, Stream> streams_;                  ///< by number
  /// By host: numbers of streams in which nothing was left to do when they were put here.
  std::unordered_map<HostId, std::deque<std::uint32_t>> idle_;
  std::uint32_t given_ = 0;
};

}  // namespace gridloom::timing
