#include "scheduler/protocol/frames.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gridloom::protocol {
namespace {

struct FrameHeader {
  std::uint32_t kind = 0;
  std::uint32_t bytes = 0;
};

/// Memory is taken as bytes come, not as a header promises them.
constexpr std::size_t kPiece = 1u << 20;

/// False: the other side has gone.
bool ReadAll(int fd, std::uint8_t* to, std::size_t count) {
  while (count != 0) {
    const ssize_t got = recv(fd, to, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

bool IsKind(std::uint32_t kind) {
  return (kind >= static_cast<std::uint32_t>(FrameKind::kCode) &&
          kind <= static_cast<std::uint32_t>(FrameKind::kFinish)) ||
         kind == static_cast<std::uint32_t>(FrameKind::kAnswer);
}

}  // namespace

Result<std::pair<Fd, Fd>> MakeChannel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error{std::string("cannot make a channel to the timing model: ") + std::strerror(errno)};
  }
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

bool SendFrame(int fd, FrameKind kind, std::span<const std::uint8_t> bytes) {
  FrameHeader header{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(bytes.size())};
  iovec parts[] = {{&header, sizeof header}, {const_cast<std::uint8_t*>(bytes.data()), bytes.size()}};
  std::size_t left = sizeof header + bytes.size();
  while (left != 0) {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t put = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    left -= static_cast<std::size_t>(put);
    auto sent = static_cast<std::size_t>(put);
    for (iovec& part : parts) {
      const std::size_t of = std::min(sent, part.iov_len);
      part.iov_base = static_cast<std::uint8_t*>(part.iov_base) + of;
      part.iov_len -= of;
      sent -= of;
    }
  }
  return true;
}

std::vector<std::uint8_t> FrameBytes(FrameKind kind, std::span<const std::uint8_t> bytes) {
  const FrameHeader header{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(bytes.size())};
  std::vector<std::uint8_t> frame(sizeof header + bytes.size());
  std::memcpy(frame.data(), &header, sizeof header);
  if (!bytes.empty()) std::memcpy(frame.data() + sizeof header, bytes.data(), bytes.size());
  return frame;
}

Result<std::optional<Frame>> ReceiveFrame(int fd, const std::function<bool(std::size_t bytes)>& take) {
  FrameHeader header;
  if (!ReadAll(fd, reinterpret_cast<std::uint8_t*>(&header), sizeof header)) return std::optional<Frame>();
  if (!IsKind(header.kind)) return Error{"a frame of unknown kind " + std::to_string(header.kind)};
  if (header.bytes > kMaxFrameBytes) return Error{"a frame of " + std::to_string(header.bytes) + " bytes"};
  Frame frame{static_cast<FrameKind>(header.kind), {}};
  while (frame.bytes.size() < header.bytes) {
    const std::size_t at = frame.bytes.size();
    const std::size_t end = at + std::min<std::size_t>(header.bytes - at, kPiece);
    if (const std::size_t has = frame.bytes.capacity(); has < end) {
      const std::size_t wanted = std::min<std::size_t>(std::max(end, 2 * has), header.bytes);
      if (take && !take(wanted - has))
        return Error{"a frame of " + std::to_string(header.bytes) + " bytes, for which there is no memory"};
      frame.bytes.reserve(wanted);
    }
    frame.bytes.resize(end);
    if (!ReadAll(fd, frame.bytes.data() + at, end - at)) return std::optional<Frame>();
  }
  return std::optional<Frame>(std::move(frame));
}

}  // namespace gridloom::protocol
