// Whose process is on the other side of a connection over the loopback.
#pragma once

#include <sys/types.h>

#include <optional>

#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

/// Asks the kernel's list of sockets. Where that cannot be asked (an old kernel, a sandbox) nobody is known.
class PeerUsers {
 public:
  PeerUsers();
  /// The user whose socket is the other end of an IPv4 connection within this machine.
  std::optional<uid_t> UserOf(int fd) const;

 private:
  protocol::Fd netlink_;
};

}  // namespace gridloom::broker
