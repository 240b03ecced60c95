// Plain connections to a port of this machine, for tests of what listens there.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

inline sockaddr_in Address(in_addr_t host, unsigned port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A port that nobody listens on now.
inline unsigned FreePort() {
  const protocol::Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Address(htonl(INADDR_LOOPBACK), 0);
  REQUIRE(bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  REQUIRE(getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

inline std::optional<protocol::Fd> ConnectTo(in_addr_t host, unsigned port) {
  protocol::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{10, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const sockaddr_in address = Address(host, port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return std::nullopt;
  return fd;
}

/// What comes, up to the end of the connection.
inline std::string ReadAll(const protocol::Fd& fd) {
  std::string answer;
  char part[4096];
  while (true) {
    const ssize_t size = recv(fd.get(), part, sizeof part, 0);
    if (size <= 0) return answer;
    answer.append(part, static_cast<std::size_t>(size));
  }
}

/// What comes back for any bytes.
inline std::string Exchange(unsigned port, const std::string& bytes) {
  const auto fd = ConnectTo(htonl(INADDR_LOOPBACK), port);
  REQUIRE(fd);
  static_cast<void>(!send(fd->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  return ReadAll(*fd);
}

inline int StatusOf(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.c_str() + 9) : 0;
}
inline std::string BodyOf(const std::string& answer) {
  const auto at = answer.find("\r\n\r\n");
  return at != std::string::npos ? answer.substr(at + 4) : "";
}

}  // namespace gridloom::broker
