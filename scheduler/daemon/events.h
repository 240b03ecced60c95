// What an epoll event of the broker's is about.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "rewriter/support/result.h"

namespace gridloom::broker {

/// The number of a session and which of its descriptors.
enum Source : std::uint64_t { kListener, kWake, kSocket, kDoorbell, kProcess };
constexpr std::uint64_t Tag(Source source, std::uint64_t session = 0) { return session << 3 | source; }

inline Status Watch(int epoll, int fd, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    return Error{std::string("cannot watch a descriptor: ") + std::strerror(errno)};
  return {};
}

}  // namespace gridloom::broker
