#include "scheduler/daemon/peer_process.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace gridloom::broker {

using protocol::Fd;

PeerProcess ProcessOf(int socket, pid_t pid, bool ask_socket) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (ask_socket) {
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return {.pidfd = Fd(fd), .certain = true};
    // Before Linux 6.16 there is no descriptor of a process that has been waited for.
    if (errno == ESRCH || errno == EINVAL || errno == ENODATA) return {.pidfd = {}, .certain = false, .gone = true};
    if (errno != ENOPROTOOPT) return {};
  }
  return {.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))};
}

}  // namespace gridloom::broker
