#include "sim/timing/live/live_streams.h"

namespace gridloom::timing {

std::uint32_t LiveStreams::NumberOf(HostId host, std::uint64_t name) {
  const auto [number, added] = numbers_.try_emplace({host, name}, 0);
  if (!added) return number->second;
  const auto idle = TakeIdle(host);
  number->second = idle ? *idle : Add({.host = host, .name = name});
  streams_.at(number->second).name = name;
  return number->second;
}

std::uint32_t LiveStreams::NumberForOne(HostId host) { return Add({.host = host, .of_one = true}); }

/// The number of a stream in which nothing is left to do, where the host has many of them.
std::optional<std::uint32_t> LiveStreams::TakeIdle(HostId host) {
  const auto found = idle_.find(host);
  if (found == idle_.end()) return std::nullopt;
  std::deque<std::uint32_t>& idle = found->second;
  while (idle.size() > kIdle) {
    const std::uint32_t number = idle.front();
    idle.pop_front();
    const auto stream = streams_.find(number);
    if (stream == streams_.end()) continue;
    stream->second.listed = false;
    if (stream->second.works != 0) continue;
    numbers_.erase({stream->second.host, stream->second.name});
    return number;
  }
  return std::nullopt;
}

std::uint32_t LiveStreams::Add(Stream stream) {
  streams_.emplace(given_, stream);
  return given_++;
}

void LiveStreams::End(std::uint32_t number) {
  Stream& stream = streams_.at(number);
  if (--stream.works != 0) return;
  if (stream.of_one) {
    streams_.erase(number);
  } else if (!stream.listed) {
    stream.listed = true;
    idle_[stream.host].push_back(number);
  }
}

std::optional<HostId> LiveStreams::OwnerOf(std::uint32_t number) const {
  const auto stream = streams_.find(number);
  return stream != streams_.end() ? std::optional(stream->second.host) : std::nullopt;
}

void LiveStreams::Forget(HostId host) {
  const auto first = numbers_.lower_bound({host, 0}), last = numbers_.lower_bound({host + 1, 0});
  for (auto number = first; number != last; ++number) streams_.erase(number->second);
  numbers_.erase(first, last);
  idle_.erase(host);
}

}  // namespace gridloom::timing
