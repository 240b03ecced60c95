// Attacks on what the daemon has of the system: descriptors, the disk, numbers of processes, names, its page, its
// socket.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/hostile/attack.h"
#include "tests/hostile/raw_tenant.h"

namespace gridloom::hostile {
namespace {

using protocol::Fd;

// ---- descriptors

/// More connections than the daemon has descriptors for.
std::vector<Fd> TakeAllDescriptors(Target& target) {
  std::vector<Fd> held;
  for (int i = 0; i < 200; ++i) {
    auto connected = protocol::Connect(target.socket, 200);
    if (!connected.ok()) break;
    held.push_back(std::move(connected).value());
  }
  return held;
}

void DescriptorExhaustion(Target& target) {
  auto held = TakeAllDescriptors(target);
  usleep(200'000);
  const double before = target.daemon->usage().cpu_seconds;
  constexpr double kSeconds = 1;
  usleep(static_cast<useconds_t>(kSeconds * 1e6));
  const double used = target.daemon->usage().cpu_seconds - before;
  Require(used < 0.5 * kSeconds, "without descriptors the daemon used " + std::to_string(used) + " s of a second");
  held.clear();
  Require(Within(10, [&] { return RawTenant::Join(target.socket, target.tenant).has_value(); }),
          "nobody is admitted after the descriptors are free again");
}

/// A tenant whose first join failed for want of a descriptor; the operator then asks for its limits.
void LimitsAfterAFailedJoin(Target& target) {
  // Leaves less and less: at some number the connection is taken, and the session's memory is not to be had.
  for (std::size_t connections = 1; connections < 60; ++connections) {
    std::vector<Fd> held;
    for (std::size_t i = 0; i < connections; ++i) held.push_back(Connected(target.socket));
    usleep(2000);
    const auto late = protocol::Connect(target.socket, 200);
    const std::string name = "late-" + std::to_string(connections);
    if (late.ok() && protocol::Send(late->get(), Format(protocol::Hello{name, "", "late"}), false)) {
      pollfd answer{late->get(), POLLIN, 0};
      poll(&answer, 1, 200);
    }
    held.clear();
  }
  for (std::size_t connections = 1; connections < 60; ++connections) {
    const protocol::Request request{.verb = protocol::Verb::kLimits,
                                    .target = "late-" + std::to_string(connections)};  // only shows them
    const bool answered = Within(5, [&] {  // a place may have to be waited for
      const auto operators = Connected(target.socket);
      if (!protocol::Send(operators.get(), Format(request), true)) return false;
      const auto answer = protocol::Receive(operators.get(), true);
      return answer.ok() && answer->state == protocol::Received::State::kMessage;
    });
    Require(answered, "the daemon does not answer about a tenant that could not join");
  }
}

// ---- the page

Fd HttpConnection(std::uint16_t port) {
  Fd connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{3, 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return connection;
}

bool Put(const Fd& connection, const std::string& text) {
  return send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

/// The page answers who knows the secret.
bool PageAnswers(std::uint16_t port) {
  const Fd connection = HttpConnection(port);
  if (!connection) return false;
  if (!Put(connection, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " +
                           std::string(DaemonProcess::kHttpSecret) + "\r\n\r\n"))
    return false;
  char head[64] = {};
  return recv(connection.get(), head, sizeof head - 1, 0) > 0 && std::string(head).find(" 200 ") != std::string::npos;
}

void HalfOpenHttp(Target& target) {
  const std::uint16_t port = target.daemon->http_port();
  Require(PageAnswers(port), "the page does not answer before the attack");
  std::vector<Fd> held;
  for (int i = 0; i < 252; ++i) {
    Fd connection = HttpConnection(port);
    if (!connection) break;
    static_cast<void>(Put(connection, i % 2 == 0 ? "GET /metrics HTTP/1.1\r\nHost: local" : "G"));
    held.push_back(std::move(connection));
  }
  for (int i = 0; i < 10; ++i) {  // go on saying a little
    for (const Fd& connection : held) static_cast<void>(send(connection.get(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
    usleep(50'000);
  }
  Require(RawTenant::Join(target.socket, target.tenant).has_value(),
          "connections to the page cost tenants their places");
  Require(Within(12, [&] { return PageAnswers(port); }), "the page does not answer beside connections that say little");
}

// ---- names

void TenantFlood(Target& target) {
  constexpr std::size_t kNames = 1200;
  for (std::size_t i = 0; i < kNames; ++i) {
    // As long as a name can be.
    const std::string name = "flood-" + std::to_string(i) + std::string(40, static_cast<char>('a' + i % 26));
    static_cast<void>(RawTenant::Join(target.socket, name));
  }
  const auto state = target.daemon->Ps();
  Require(state["tenants"].size() > kNames, "ps does not show all tenants");
}

// ---- the disk

void SlowDisk(Target& target) {
  for (int i = 0; i < 3; ++i) {  // accounts and limits change, and are written
    target.daemon->Ask(
        {.verb = protocol::Verb::kLimits, .target = "honest", .fields = protocol::kFieldWeight, .weight = 1.0 + i});
    usleep(700'000);
  }
}

// ---- numbers of processes

/// A process that is the next one to have this number; -1: the system does not let us choose.
pid_t ForkAs(pid_t number) {
  for (int i = 0; i < 50; ++i) {
    std::ofstream last("/proc/sys/kernel/ns_last_pid");
    if (!(last << number - 1 << std::flush)) return -1;
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    if (child == number) return child;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return -1;
}

/// A process connects while the daemon does not look, hands its connection to a child and dies. Its number goes to
/// another process, which has nothing to do with it. An operator then kills the session "with its process".
void ReusedProcess(Target& target) {
  target.daemon->Signal(SIGSTOP);
  int number[2], go[2];
  Require(pipe2(number, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0, "no pipe");
  const auto hello = Format(protocol::Hello{"reused", "", "reused"});
  const pid_t parent = fork();
  if (parent == 0) {
    const auto connected = protocol::Connect(target.socket, 10'000);
    if (!connected.ok()) _exit(1);
    if (fork() == 0) {  // it says hello once the daemon has accepted, and stays
      char byte = 0;
      static_cast<void>(!read(go[0], &byte, 1));
      protocol::Send(connected->get(), hello, true);
      static_cast<void>(!read(go[0], &byte, 1));
    }
    _exit(0);
  }
  waitpid(parent, nullptr, 0);
  const pid_t innocent = ForkAs(parent);
  target.daemon->Signal(SIGCONT);
  static_cast<void>(!write(go[1], "x", 1));
  if (innocent > 0) {
    usleep(300'000);
    for (const std::string& victim : {std::string("reused"), std::to_string(innocent)}) {
      const auto operators = Connected(target.socket);
      protocol::Send(operators.get(),
                     Format(protocol::Request{.verb = protocol::Verb::kKill, .target = victim, .fields = 1}), true);
      static_cast<void>(protocol::Receive(operators.get(), true));
    }
    usleep(100'000);
  }
  static_cast<void>(!write(go[1], "x", 1));
  const bool lives = innocent > 0 && waitpid(innocent, nullptr, WNOHANG) == 0;
  if (lives) {
    kill(innocent, SIGKILL);
    waitpid(innocent, nullptr, 0);
  }
  for (const int fd : {number[0], number[1], go[0], go[1]}) close(fd);
  if (innocent < 0) std::printf("reused-process: not tried, numbers of processes cannot be chosen here\n");
  else Require(lives, "a process that never spoke to the broker was killed for another one that had its number");
}

// ---- the socket

/// Somebody who may write into the folder has put a socket of their own in the place of the daemon's.
void SocketOfAnother(Target& target) {
  const std::string path = target.daemon->folder() + "/other";
  DaemonProcess daemon({}, path);
  std::filesystem::remove(path);
  const auto other = protocol::Listen(path, 0600);
  Require(other.ok(), "cannot listen in the daemon's place");
  daemon.Stop();
  Require(std::filesystem::exists(path), "a daemon that stops removes another one's socket");
}

constexpr Attack kAttacks[] = {
    {.name = "descriptor-exhaustion",
     .what = "more connections than there are descriptors",
     .run = DescriptorExhaustion,
     .setup = {.descriptors = 160},
     .ps_seconds = 1e9},
    {.name = "limits-after-a-failed-join",
     .what = "limits of a tenant that could not join for want of descriptors",
     .run = LimitsAfterAFailedJoin,
     .setup = {.descriptors = 100},
     .ps_seconds = 1e9},
    {.name = "half-open-http",
     .what = "252 connections to the page that say little",
     .run = HalfOpenHttp,
     .setup = {.http = true}},
    {.name = "tenant-flood", .what = "1,200 tenants with long names", .run = TenantFlood, .left_mb = 16},
    {.name = "slow-disk",
     .what = "a disk that takes 0.8 s for each write",
     .run = SlowDisk,
     .setup = {.slow_disk = true},
     .honest_seconds = 0.4,
     .ps_seconds = 0.4},
    {.name = "reused-process",
     .what = "the number of a process that died goes to an innocent one",
     .run = ReusedProcess},
    {.name = "socket-of-another",
     .what = "a socket of somebody else in the place of the daemon's, which stops",
     .run = SocketOfAnother},
};

}  // namespace

std::span<const Attack> ResourceAttacks() { return kAttacks; }

}  // namespace gridloom::hostile
