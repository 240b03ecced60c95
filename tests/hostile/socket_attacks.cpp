// Attacks by connections and messages.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/hostile/attack.h"
#include "tests/hostile/raw_tenant.h"

extern char** environ;

namespace gridloom::hostile {
namespace {

using protocol::Fd;
using protocol::RecordKind;

/// What has to be there after an attack on places: one of them.
void StillAdmits(Target& target) {
  Require(Within(10, [&] { return RawTenant::Join(target.socket, target.tenant).has_value(); }),
          "nobody is admitted any more");
}

void SilentConnections(Target& target) {
  std::vector<Fd> silent;
  for (int i = 0; i < 600; ++i) {
    auto connected = protocol::Connect(target.socket, 2000);
    if (connected.ok()) silent.push_back(std::move(connected).value());
  }
  StillAdmits(target);
}

void GarbageMessages(Target& target) {
  std::vector<std::byte> bytes(target.daemon != nullptr ? 40'000 : 20'000);
  for (int i = 0; i < 400; ++i) {
    const Fd connection = Connected(target.socket);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(target.random());
    const auto hello = Format(protocol::Hello{target.tenant, "", "garbage"});
    if (i % 4 == 0) std::memcpy(bytes.data(), hello.data(), 8 + target.Below(24));  // gets past the first checks
    static_cast<void>(protocol::Send(connection.get(), std::span(bytes).first(1 + target.Below(bytes.size())), true));
  }
}

/// Messages that are well made, of kinds and with numbers that have no place where they come.
void MisplacedMessages(Target& target) {
  const std::vector<std::byte> messages[] = {
      Format(protocol::Welcome{}), Format(protocol::Text{protocol::MessageType::kGoodbye, 2, false, "bye"}),
      Format(protocol::Request()), Format(protocol::Hello{target.tenant, "", "again"}),
      Format(protocol::Request{.verb = protocol::Verb::kKill, .target = "nobody-of-that-name"})};
  for (int i = 0; i < 200; ++i) {
    const auto tenant = RawTenant::Join(target.socket, target.tenant);
    if (!tenant) continue;
    for (int n = 0; n < 3; ++n) {
      if (!protocol::Send(tenant->socket(), messages[target.Below(std::size(messages))], true)) break;
    }
    Require(tenant->Dropped(5), "a session is still there after messages that have no place in it");
  }
}

void DescriptorsSentAlong(Target& target) {
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (int i = 0; i < 200; ++i) {
    const Fd connection = Connected(target.socket);
    const int fd = null.get();
    static_cast<void>(
        protocol::Send(connection.get(), Format(protocol::Hello{target.tenant, "", ""}), true, {fd, fd, fd, fd}));
  }
  // More at once than a message of the protocol has room for.
  const Fd connection = Connected(target.socket);
  constexpr int kMany = 200;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMany)] = {};
  char byte = 0;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const item = CMSG_FIRSTHDR(&message);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(sizeof(int) * kMany);
  const std::vector<int> fds(kMany, null.get());
  std::memcpy(CMSG_DATA(item), fds.data(), sizeof(int) * kMany);
  static_cast<void>(sendmsg(connection.get(), &message, MSG_NOSIGNAL));
}

void HelloFlood(Target& target) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(target.seconds);
  const std::uint64_t before = target.daemon != nullptr ? target.daemon->StateFileBytes("audit.jsonl") : 0;
  while (std::chrono::steady_clock::now() < until) {
    const auto connected = protocol::Connect(target.socket, 5000);
    if (connected.ok())
      static_cast<void>(protocol::Send(connected->get(), Format(protocol::Hello{target.tenant, "", "flood"}), true));
  }
  if (target.daemon == nullptr) return;
  const std::uint64_t lines = target.daemon->StateFileBytes("audit.jsonl") - before;
  Require(lines < 1u << 20, "the audit log grew by " + std::to_string(lines) + " bytes by processes that come and go");
}

/// Asks, and does not read the answers.
void QuestionsWithoutEnd(Target& target) {
  std::vector<Fd> askers;
  const auto question = Format(protocol::Request());
  for (int i = 0; i < 20; ++i) {
    askers.push_back(Connected(target.socket));
    for (int n = 0; n < 200; ++n) {
      if (!protocol::Send(askers.back().get(), question, false)) break;
    }
  }
}

// ---- processes that are killed

void Kills(Target& target) {
  for (int i = 0; i < 12; ++i) {
    const std::string point = std::to_string(target.Below(5));
    std::string program = "/proc/self/exe", verb = "--victim", socket = target.socket, number = point;
    char* arguments[] = {program.data(), verb.data(), socket.data(), number.data(), nullptr};
    int ready[2];
    Require(pipe2(ready, O_CLOEXEC) == 0, "no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ready[1], STDOUT_FILENO);
    pid_t child = -1;
    const int spawned = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ready[1]);
    Require(spawned == 0, "cannot start a process");
    char byte = 0;
    const bool came = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    usleep(static_cast<useconds_t>(target.Below(3000)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    Require(came, "the process to be killed did not come to point " + point);
  }
}

constexpr Attack kAttacks[] = {
    {.name = "silent-connections",
     .what = "600 connections that say nothing",
     .run = SilentConnections,
     .soak = true,
     .ps_seconds = 5},
    {.name = "garbage-messages",
     .what = "messages of any bytes, with and without a head that is right",
     .run = GarbageMessages,
     .soak = true},
    {.name = "misplaced-messages",
     .what = "well-made messages that have no place in a session",
     .run = MisplacedMessages,
     .soak = true},
    {.name = "descriptors-sent-along",
     .what = "messages with descriptors, up to 200 at once",
     .run = DescriptorsSentAlong,
     .soak = true},
    {.name = "hello-flood", .what = "processes that join and go as fast as they can", .run = HelloFlood, .soak = true},
    {.name = "unread-answers",
     .what = "operators' questions whose answers nobody reads",
     .run = QuestionsWithoutEnd,
     .soak = true},
    {.name = "kills", .what = "processes that are killed at any point of a session", .run = Kills, .soak = true},
};

}  // namespace

std::span<const Attack> SocketAttacks() { return kAttacks; }

int Victim(const std::string& socket, unsigned point) {
  const Fd connection = Connected(socket);
  std::optional<RawTenant> tenant;
  if (point >= 1) tenant = RawTenant::Join(socket, "victim");
  if (tenant && point >= 2) tenant->PushAsIs(LaunchRecord(0, 1, 1000));
  if (tenant && point >= 3) tenant->AwaitGrant(0);
  if (tenant && point >= 4) {
    auto progress = RecordOf(RecordKind::kProgress, 0, 1, tenant->granted());
    progress.sequence = 1;
    tenant->PushAsIs(progress);
  }
  static_cast<void>(!write(STDOUT_FILENO, "x", 1));
  pause();
  return 0;
}

}  // namespace gridloom::hostile
