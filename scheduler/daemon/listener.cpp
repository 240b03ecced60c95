#include "scheduler/daemon/listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gridloom::broker {

using protocol::Fd;

namespace {

/// Held until it is closed. The file stays: to remove it would let two brokers lock two files of the same name.
Result<Fd> Lock(const std::string& path) {
  const auto failed = [&](const std::string& what) { return Error{what + " " + path + ": " + std::strerror(errno)}; };
  Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  struct stat info {};
  if (!lock || fstat(lock.get(), &info) != 0) return failed("cannot lock");
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid()) return Error{path + " is no file of the broker's user"};
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Error{"another broker listens on " + path.substr(0, path.rfind('.'))};
    return failed("cannot lock");
  }
  return lock;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Open(const std::string& path, mode_t mode) {
  GL_TRY_STATUS(protocol::MakeSocketFolder(path));
  GL_TRY(lock, Lock(path + ".lock"));
  GL_TRY(socket, protocol::Listen(path, mode));
  return std::unique_ptr<Listener>(new Listener(path, std::move(lock), std::move(socket)));
}

Listener::Listener(std::string path, Fd lock, Fd socket)
    : path_(std::move(path)), lock_(std::move(lock)), socket_(std::move(socket)) {
  if (lstat(path_.c_str(), &made_) != 0) made_ = {};
}

Listener::~Listener() {
  struct stat info {};
  // Somebody may have removed it, and something else may stand there now.
  if (lstat(path_.c_str(), &info) != 0 || info.st_ino != made_.st_ino || info.st_dev != made_.st_dev) return;
  unlink(path_.c_str());
}

Listener::Accepted Listener::Accept() {
  const auto accept = [&] { return Fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); };
  using State = Accepted::State;
  spare_.Keep();
  Fd socket = accept();
  if (socket) return {State::kConnection, std::move(socket)};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
  if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO) return {State::kRefused, {}};
  if (!spare_.Help(errno)) return {State::kExhausted, {}};
  bool refused = false;
  if (const Fd last = accept(); last) {
    const protocol::Text text{protocol::MessageType::kRefused, 0, false, "the broker has no descriptors left"};
    protocol::Send(last.get(), Format(text), false);
    refused = true;
  }
  spare_.Keep();
  return {refused ? State::kRefused : State::kExhausted, {}};
}

}  // namespace gridloom::broker
