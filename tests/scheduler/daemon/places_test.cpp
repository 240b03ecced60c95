// Descriptors, places and process numbers: what tenants could take from each other without a single wrong message.
#include "scheduler/daemon/places.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "scheduler/daemon/listener.h"
#include "scheduler/daemon/peer_process.h"
#include "scheduler/protocol/wait.h"
#include "tests/scheduler/daemon/broker_fixture.h"

namespace gridloom::broker {
namespace {

using protocol::Fd;
using protocol::Verdict;

TEST_CASE("Places_OneUser_DoesNotTakeThoseOfAllOthers") {
  Places places(16, 0, 1000);
  const auto join = [&](uid_t user) {
    if (places.RefuseConnection(user) != nullptr) return false;
    places.Connect(user);
    if (places.RefuseSession() != nullptr) {
      places.Leave(user, false);
      return false;
    }
    places.Admit(user);
    return true;
  };
  for (int i = 0; i < 4; ++i) CHECK(join(1001));
  CHECK_FALSE(join(1001));
  for (int i = 0; i < 12; ++i) CHECK(join(1000));  // the broker's own user may take all there are
  CHECK_FALSE(join(1000));
  CHECK_FALSE(join(1002));
  CHECK(places.RefuseConnection(1002) != nullptr);
  CHECK(places.RefuseConnection(1000) == nullptr);  // to ask something
  CHECK(places.RefuseConnection(0) == nullptr);
  places.Leave(1001, true);
  CHECK(join(1002));
  places.Leave(1002, true);
  CHECK(join(1001));
}

TEST_CASE("Places_PerUser_AreConfigurable") {
  Places places(100, 2, 1000);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(places.RefuseConnection(7) == nullptr);
    places.Connect(7);
  }
  CHECK(std::string(places.RefuseConnection(7)) == "its user has too many sessions");
}

/// No descriptor can be made while this lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

TEST_CASE("Connections_WithoutDescriptors_AreRefusedAndTheLoopSleeps") {
  BrokerFixture f;
  f.Start();
  const auto honest = f.Join("honest");
  std::vector<Fd> waiting;
  for (int i = 0; i < 20; ++i) waiting.emplace_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(f.config.socket);
  std::uint64_t wakeups = 0;
  int connected = 0;
  Verdict verdict = Verdict::kLost;
  {
    const NoDescriptors none;
    for (const Fd& fd : waiting)
      connected += connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 1 : 0;
    verdict = RunLaunch(*honest, 20);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const std::uint64_t before = f.State()["wakeups"];
    std::this_thread::sleep_for(std::chrono::seconds(1));
    wakeups = f.State()["wakeups"].get<std::uint64_t>() - before;
  }
  CHECK(connected == 20);
  CHECK(verdict == Verdict::kGranted);
  CHECK(wakeups < 50);
  int refused = 0;
  for (const Fd& fd : waiting) {
    const timeval soon{1, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    const auto answer = protocol::Receive(fd.get(), true);
    if (!answer.ok() || answer->state != protocol::Received::State::kMessage) continue;
    const auto message = protocol::ParseMessage(answer->bytes);
    const auto* const text = message.ok() ? std::get_if<protocol::Text>(&*message) : nullptr;
    refused += text != nullptr && text->text == "the broker has no descriptors left" ? 1 : 0;
  }
  CHECK(refused == 20);
  CHECK(RunLaunch(*f.Join("later"), 20) == Verdict::kGranted);
}

/// Without the spare one, too, as when the whole system has none: who waits is heard once there are some again.
TEST_CASE("Connections_ThatCannotEvenBeRefused_WaitWithoutTheLoopSpinning") {
  BrokerFixture f;
  f.Start();
  std::vector<Fd> waiting;
  for (int i = 0; i < 3; ++i) waiting.emplace_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(f.config.socket);
  std::uint64_t wakeups = 0;
  {
    // Whoever opens in the moment when the spare one is free gets it: here by a limit below all that is open.
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit few{3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (const Fd& fd : waiting)
      static_cast<void>(!connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const std::uint64_t start = f.State()["wakeups"];
    std::this_thread::sleep_for(std::chrono::seconds(1));
    wakeups = f.State()["wakeups"].get<std::uint64_t>() - start;
    setrlimit(RLIMIT_NOFILE, &before);
  }
  CHECK(wakeups < 50);
  CHECK(f.Eventually([&] { return f.broker().counters().sessions == 0 && f.State()["sessions"].empty(); }));
  REQUIRE(protocol::Send(waiting[0].get(), Format(protocol::Hello{"late", "", "late"}), true));
  const auto answer = protocol::Receive(waiting[0].get(), true);
  REQUIRE(answer.ok());
  CHECK(answer->fds.size() == 2);  // welcome
}

TEST_CASE("Limits_OfATenantWhoseJoinFailed_AreAnswered") {
  BrokerFixture f;
  f.Start();
  auto socket = protocol::Connect(f.config.socket, 5000);
  REQUIRE(socket.ok());
  REQUIRE(f.Eventually([&] { return !f.State()["places"]["silent"].is_null() && f.State()["places"]["silent"] == 1; }));
  bool refused = false;
  {
    const NoDescriptors none;
    REQUIRE(protocol::Send(socket->get(), Format(protocol::Hello{"unlucky", "", ""}), true));
    const auto answer = protocol::Receive(socket->get(), true);
    refused = answer.ok() && answer->fds.empty();
  }
  CHECK(refused);
  CHECK(f.Ask({.verb = protocol::Verb::kLimits, .target = "unlucky", .fields = protocol::kFieldWeight, .weight = 3}));
  CHECK(f.TenantState("unlucky")["limits"]["weight"] == 3);
}

/// A socket that a process has connected which is no more: its number is free.
struct Orphan {
  Fd socket;
  pid_t pid = 0;

  explicit Orphan(const std::string& path) : socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = AddressOf(path);
    pid = fork();
    if (pid == 0)
      _exit(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : 1);
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    REQUIRE(status == 0);
  }
};

/// A process that has this number and waits, where one can be made; 0: the system gives out no chosen numbers here.
pid_t ProcessNumbered(pid_t wanted) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::ofstream last("/proc/sys/kernel/ns_last_pid");
    if (!(last << wanted - 1 << std::flush)) return 0;
    const pid_t pid = fork();
    if (pid == 0) {
      pause();
      _exit(0);
    }
    if (pid == wanted) return pid;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return 0;
}

TEST_CASE("ProcessOf_ANumberUsedAgain_IsNeverCertainlySomebodyElse") {
  char name[] = "/tmp/gridloom-peer-XXXXXX";
  const std::string folder = mkdtemp(name), path = folder + "/socket";
  {
    const auto listener = Listener::Open(path, 0600);
    REQUIRE(listener.ok());
    const Orphan orphan(path);
    const pid_t other = ProcessNumbered(orphan.pid);
    const Listener::Accepted accepted = (*listener)->Accept();
    REQUIRE(accepted.state == Listener::Accepted::State::kConnection);
    const auto peer = protocol::PeerOf(accepted.socket.get());
    REQUIRE(peer.ok());
    CHECK(peer->pid == orphan.pid);
    for (const bool ask_socket : {true, false}) {
      const PeerProcess process = ProcessOf(accepted.socket.get(), peer->pid, ask_socket);
      // A descriptor that may be signalled is of a process that has ended, not of the one that has its number now.
      if (process.certain) CHECK(syscall(SYS_pidfd_send_signal, process.pidfd.get(), 0, nullptr, 0) != 0);
      if (!ask_socket) CHECK_FALSE(process.certain);
    }
    if (other != 0) {
      CHECK(kill(other, 0) == 0);
      kill(other, SIGKILL);
      waitpid(other, nullptr, 0);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("ProcessOf_APeerThatLives_IsCertainWhereTheKernelSaysSo") {
  BrokerFixture f;
  f.Start();
  const pid_t child = fork();
  if (child == 0) {
    const auto socket = protocol::Connect(f.config.socket, 5000);
    if (socket.ok()) protocol::Send(socket->get(), Format(protocol::Hello{"victim", "", ""}), true);
    while (true) pause();
  }
  REQUIRE(f.Eventually([&] { return f.State()["sessions"].size() == 1; }));
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  const bool kernel_says = ProcessOf(pair[0], getpid()).certain;
  close(pair[0]);
  close(pair[1]);
  REQUIRE(f.Ask({.verb = protocol::Verb::kKill, .target = std::to_string(child), .fields = 1}));
  if (!kernel_says) kill(child, SIGTERM);  // it was not signalled
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == (kernel_says ? SIGKILL : SIGTERM));
}

TEST_CASE("Listener_TwoBrokersAtOnce_OneListensAndTheOtherTouchesNothing") {
  char name[] = "/tmp/gridloom-listener-XXXXXX";
  const std::string folder = mkdtemp(name), path = folder + "/socket";
  for (int round = 0; round < 50; ++round) {
    struct Start {
      std::unique_ptr<Listener> listener;
      std::string why_not;
    };
    std::array<Start, 4> starts;
    {
      std::vector<std::thread> threads;
      for (Start& start : starts) {
        threads.emplace_back([&start, &path] {
          auto made = Listener::Open(path, 0600);
          if (made.ok()) start.listener = std::move(made).value();
          else start.why_not = made.error().message;
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    int listening = 0;
    for (const Start& start : starts) {
      if (start.listener != nullptr) ++listening;
      else CHECK(start.why_not == "another broker listens on " + path);
    }
    CHECK(listening == 1);
    CHECK(protocol::Connect(path).ok());
  }
  CHECK_FALSE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

TEST_CASE("Listener_ThatEnds_LeavesAnothersSocket") {
  char name[] = "/tmp/gridloom-listener-XXXXXX";
  const std::string folder = mkdtemp(name), path = folder + "/socket";
  {
    auto first = Listener::Open(path, 0600);
    REQUIRE(first.ok());
    REQUIRE(unlink(path.c_str()) == 0);
    REQUIRE(unlink((path + ".lock").c_str()) == 0);  // somebody has cleaned up
    auto second = Listener::Open(path, 0600);
    REQUIRE(second.ok());
    first->reset();
    CHECK(protocol::Connect(path).ok());
  }
  CHECK_FALSE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

TEST_CASE("Launches_ThatHaveEnded_LeaveNothingBehind") {
  BrokerFixture f;
  f.Start();
  const auto client = f.Join("alice");
  for (int i = 0; i < 2000; ++i) REQUIRE(RunLaunch(*client, 4) == Verdict::kGranted);
  protocol::Client::Ticket ticket;
  REQUIRE(client->Announce(LaunchOf(4), &ticket) == Verdict::kGranted);
  REQUIRE(f.Eventually([&] { return f.TenantState("alice")["launches"] == 2000; }));
  CHECK(f.State()["launches_known"] == 1);
  client->End(ticket, 0, false);
  CHECK(f.Eventually([&] { return f.State()["launches_known"] == 0; }));
}

}  // namespace
}  // namespace gridloom::broker
