// The process at the other end of a connection, for good: its number may be another one's by the time that somebody
// uses it.
#pragma once

#include <sys/types.h>

#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

struct PeerProcess {
  protocol::Fd pidfd;  ///< empty where the kernel has none
  /// The kernel has said that the descriptor is the process that connected; only then may it be signalled.
  bool certain = false;
  bool gone = false;  ///< it has ended and been waited for
};

/// `ask_socket`: use SO_PEERPIDFD where there is (Linux 6.5); tests do without. Without it the process that has the
/// number now may be another one than the one that connected, which is good enough for noticing an end, and for nothing
/// else.
PeerProcess ProcessOf(int socket, pid_t pid, bool ask_socket = true);

}  // namespace gridloom::broker
