#include "scheduler/daemon/peer_user.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstring>

namespace gridloom::broker {

PeerUsers::PeerUsers() : netlink_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
  const timeval patience{0, 50'000};  // the kernel answers at once; nothing is waited for that does not come
  if (netlink_) setsockopt(netlink_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

std::optional<uid_t> PeerUsers::UserOf(int fd) const {
  sockaddr_in own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (!netlink_ || getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
    return std::nullopt;
  }
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = AF_INET;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = ~0u;
  inet_diag_sockid& id = question.request.id;  // as the other side sees the connection
  id.idiag_sport = peer.sin_port;
  id.idiag_dport = own.sin_port;
  id.idiag_src[0] = peer.sin_addr.s_addr;
  id.idiag_dst[0] = own.sin_addr.s_addr;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (send(netlink_.get(), &question, sizeof question, 0) != static_cast<ssize_t>(sizeof question)) return std::nullopt;
  alignas(nlmsghdr) char answer[4096];
  const ssize_t size = recv(netlink_.get(), answer, sizeof answer, 0);
  nlmsghdr header{};
  inet_diag_msg found{};
  if (size < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof found)) return std::nullopt;
  std::memcpy(&header, answer, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
  if (found.id.idiag_sport != peer.sin_port || found.id.idiag_dport != own.sin_port) return std::nullopt;
  return found.idiag_uid;
}

}  // namespace gridloom::broker
