#include "scheduler/protocol/socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "scheduler/protocol/server_check.h"

namespace gridloom::protocol {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFds = 4;

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{"the socket's path '" + path + "' is empty or longer than " +
                 std::to_string(sizeof address.sun_path - 1) + " bytes"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Error Failed(const std::string& what, const std::string& path) {
  return Error{what + " " + path + ": " + std::strerror(errno)};
}

/// Nobody but us may be able to put another socket in the place of ours.
Status CheckFolder(const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  std::error_code error;
  if (!fs::exists(folder, error)) {
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return Failed("cannot make folder", folder);
  }
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0) return Failed("cannot look at folder", folder);
  if (!S_ISDIR(info.st_mode)) return Error{folder.string() + " is no folder"};
  const bool sticky = (info.st_mode & S_ISVTX) != 0;
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return Error{"folder " + folder.string() + " belongs to another user"};
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky) {
    return Error{"others may write into folder " + folder.string() + "; choose another, or `chmod go-w` it"};
  }
  return {};
}

Result<Fd> ConnectToAnybody(const std::string& path, unsigned timeout_ms) {
  GL_TRY(address, AddressOf(path));
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return Failed("cannot make a socket for", path);
  if (timeout_ms != 0) {
    const timeval timeout{timeout_ms / 1000, static_cast<suseconds_t>(timeout_ms % 1000) * 1000};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  }
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  if (errno == ENOENT || errno == ECONNREFUSED)
    return Error{"no broker answers on " + path + "; start one with `gridloom daemon`"};
  return Failed("cannot connect to the broker on", path);
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

std::string DefaultSocketPath() {
  if (const char* path = std::getenv("GRIDLOOM_SOCKET"); path != nullptr && *path != '\0') return path;
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR"); folder != nullptr && *folder == '/')
    return std::string(folder) + "/gridloom.sock";
  return "/tmp/gridloom-" + std::to_string(getuid()) + "/broker.sock";
}

Status MakeSocketFolder(const std::string& path) { return CheckFolder(path); }

Result<Fd> Listen(const std::string& path, mode_t mode) {
  GL_TRY(address, AddressOf(path));
  GL_TRY_STATUS(CheckFolder(path));
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) return Error{path + " exists and is no socket"};
    if (ConnectToAnybody(path, 0).ok()) return Error{"another broker listens on " + path};
    if (unlink(path.c_str()) != 0) return Failed("cannot remove the old socket", path);
  }
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Failed("cannot make a socket for", path);
  // Owner-only from the first moment; widened, if asked for, once it is in place.
  const mode_t old = umask(0177);
  const int bound = bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  umask(old);
  if (bound != 0) return Failed("cannot listen on", path);
  if (mode != 0600 && chmod(path.c_str(), mode) != 0) return Failed("cannot set the permissions of", path);
  if (listen(fd.get(), 256) != 0) return Failed("cannot listen on", path);
  return fd;
}

Result<Fd> Connect(const std::string& path, unsigned timeout_ms) {
  GL_TRY(fd, ConnectToAnybody(path, timeout_ms));
  GL_TRY(server, PeerOf(fd.get()));
  GL_TRY(way, WalkTo(path));
  GL_TRY_STATUS(CheckServer(way, server, geteuid()));
  return fd;
}

Result<Received> Receive(int fd, bool wait) {
  Received received;
  received.bytes.resize(kMaxMessageBytes);
  iovec part{received.bytes.data(), received.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t size = 0;
  do {
    size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    received.state = errno == EAGAIN || errno == EWOULDBLOCK ? Received::State::kNothing : Received::State::kClosed;
    return received;
  }
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int one = -1;
      std::memcpy(&one, CMSG_DATA(item) + i * sizeof one, sizeof one);
      received.fds.emplace_back(one);
    }
  }
  if ((message.msg_flags & MSG_TRUNC) != 0)
    return Error{"a message longer than " + std::to_string(kMaxMessageBytes) + " bytes"};
  if ((message.msg_flags & MSG_CTRUNC) != 0) return Error{"a message with too many descriptors"};
  received.bytes.resize(static_cast<std::size_t>(size));
  received.state = size == 0 ? Received::State::kClosed : Received::State::kMessage;
  return received;
}

bool Send(int fd, std::span<const std::byte> bytes, bool wait, std::initializer_list<int> fds) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fds.size() != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* const item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(item), fds.begin(), sizeof(int) * fds.size());
  }
  ssize_t size = 0;
  do {
    size = sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
  } while (size < 0 && errno == EINTR);
  return size == static_cast<ssize_t>(bytes.size());
}

bool IsOneUser(uid_t uid, std::string_view uid_map, uid_t overflow) {
  if (uid != overflow) return true;
  std::istringstream lines{std::string(uid_map)};
  std::uint64_t mapped = 0;
  for (std::uint64_t inside = 0, outside = 0, count = 0; lines >> inside >> outside >> count;) mapped += count;
  return mapped >= std::numeric_limits<std::uint32_t>::max();  // all that there can be: -1 is no user
}

Result<Peer> PeerOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return Error{"cannot tell who connected"};
  Peer peer{credentials.pid, credentials.uid, credentials.gid};
  static const uid_t overflow = [] {  // of the machine, set before anything of ours starts
    std::ifstream file("/proc/sys/kernel/overflowuid");
    uid_t number = 65534;
    file >> number;
    return file ? number : 65534;
  }();
  if (peer.uid == overflow) {
    std::ifstream file("/proc/self/uid_map");
    peer.user_known = IsOneUser(peer.uid, std::string(std::istreambuf_iterator(file), {}), overflow);
  }
  return peer;
}

}  // namespace gridloom::protocol
