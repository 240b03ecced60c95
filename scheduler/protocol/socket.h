// The broker's Unix socket: SOCK_SEQPACKET, owner-only unless told otherwise.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/protocol/message.h"

namespace gridloom::protocol {

/// A descriptor that is closed when its owner goes.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// $GRIDLOOM_SOCKET, else $XDG_RUNTIME_DIR/gridloom.sock, else /tmp/gridloom-UID/broker.sock.
std::string DefaultSocketPath();

/// Makes the socket's folder, owner-only, where it is missing; a folder in which others may put files is an error.
Status MakeSocketFolder(const std::string& path);

/// A listening socket with these permissions. A socket that nobody listens on any more is replaced; one in use is an
/// error. A missing folder is made, owner-only; a folder in which others may put files is an error.
Result<Fd> Listen(const std::string& path, mode_t mode);

/// A connection to a broker whom one may tell a secret (server_check.h); an error that says what to do when nobody
/// listens, or who does is not to be trusted. Blocking, or with `timeout_ms` for sends and receives.
Result<Fd> Connect(const std::string& path, unsigned timeout_ms = 0);

struct Received {
  enum class State : std::uint8_t { kMessage, kNothing, kClosed };
  State state = State::kNothing;
  std::vector<std::byte> bytes;
  std::vector<Fd> fds;
};
/// One datagram. An error: it was larger than a message can be, or the socket failed.
Result<Received> Receive(int fd, bool wait);

/// False when the other side is gone or does not take it now (never waits when `wait` is false).
bool Send(int fd, std::span<const std::byte> bytes, bool wait, std::initializer_list<int> fds = {});

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  bool user_known = true;  ///< false: `uid` stands for all users that this process' user namespace has no number for
};
/// Who is on the other side: who connected, or, of a connection that we made, who listens.
Result<Peer> PeerOf(int fd);

/// Whether a user's number that the kernel tells is that of one user. `uid_map`: the text of /proc/self/uid_map,
/// `overflow` the number that it tells of users that the map lacks. Where it lacks some that number says nothing, even
/// if the map has a user of that number.
bool IsOneUser(uid_t uid, std::string_view uid_map, uid_t overflow);

}  // namespace gridloom::protocol
