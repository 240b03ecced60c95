// Whom a program tells its secret: who may serve a broker where, and what happens to a program whose socket somebody
// else made first.
#include "scheduler/protocol/server_check.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>

#include "scheduler/protocol/client.h"

namespace gridloom::protocol {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kSelf = 1000, kOther = 1001, kThird = 1002;
constexpr mode_t kDir = S_IFDIR | 0755, kOpenDir = S_IFDIR | 0777, kSticky = S_IFDIR | S_ISVTX | 0777,
                 kGroupDir = S_IFDIR | 0775;

/// The way to a socket in the last of the folders, which are named by their numbers.
SocketPath Way(const std::vector<std::pair<uid_t, mode_t>>& folders, uid_t socket_owner) {
  SocketPath way;
  std::string path = "/";
  for (const auto& [uid, mode] : folders) {
    way.steps.push_back({path, uid, mode});
    path += std::to_string(way.steps.size()) + "/";
  }
  way.folder = way.steps.back();
  way.socket = {path + "broker.sock", socket_owner, S_IFSOCK | 0666};
  return way;
}

bool Trusted(const SocketPath& way, uid_t server) {
  return CheckServer(way, Peer{.pid = 1, .uid = server, .gid = 1}, kSelf).ok();
}

TEST_CASE("CheckServer_OwnUserAndRoot_AreTrustedInFoldersThatAreTheirs") {
  for (const uid_t server : {uid_t{0}, kSelf}) {
    INFO(server);
    CHECK(Trusted(Way({{0, kDir}, {0, kDir}, {kSelf, S_IFDIR | 0700}}, server), server));
    CHECK(Trusted(Way({{0, kDir}, {0, kSticky}}, server), server));  // /tmp itself
    CHECK(Trusted(Way({{0, kDir}, {0, kSticky}, {kSelf, S_IFDIR | 0700}}, server), server));
    CHECK_FALSE(Trusted(Way({{0, kDir}, {0, kSticky}, {kOther, kDir}}, server), server));
    CHECK_FALSE(Trusted(Way({{0, kDir}, {0, kOpenDir}}, server), server));
    CHECK_FALSE(Trusted(Way({{0, kDir}, {kSelf, kGroupDir}}, server), server));
  }
}

TEST_CASE("CheckServer_AnotherUser_IsTrustedWhereThePathSaysThatTheBrokerIsTheirs") {
  CHECK(Trusted(Way({{0, kDir}, {0, kDir}, {kOther, kDir}}, kOther), kOther));      // /run/gridloom of a service user
  CHECK(Trusted(Way({{0, kDir}, {0, kDir}, {0, kDir}}, kOther), kOther));           // a socket that root handed over
  CHECK(Trusted(Way({{0, kDir}, {kSelf, kDir}, {kOther, kDir}}, kOther), kOther));  // in a folder of our own
  CHECK_FALSE(Trusted(Way({{0, kDir}, {0, kSticky}, {kOther, S_IFDIR | 0700}}, kOther),
                      kOther));  // /tmp/gridloom-1000, made by another
  CHECK_FALSE(Trusted(Way({{0, kDir}, {0, kSticky}}, kOther), kOther));
  CHECK_FALSE(Trusted(Way({{0, kDir}, {0, kDir}, {kThird, kDir}}, kOther), kOther));
  CHECK_FALSE(Trusted(Way({{0, kDir}, {kThird, kDir}, {kOther, kDir}}, kOther), kOther));
  CHECK_FALSE(Trusted(Way({{0, kDir}, {kOther, kGroupDir}}, kOther), kOther));
  CHECK_FALSE(Trusted(Way({{0, kDir}, {kOther, kDir}}, kThird), kOther));  // who listens is not whose socket it is
  CHECK_FALSE(Trusted(Way({{0, kDir}, {kOther, kDir}}, kOther), kThird));
}

TEST_CASE("CheckServer_UserWithoutANumberHere_IsNobodyOnesTrusts") {
  const auto way = Way({{0, kDir}, {kSelf, S_IFDIR | 0700}}, kSelf);
  const Status status = CheckServer(way, Peer{.pid = 1, .uid = kSelf, .gid = 1, .user_known = false}, kSelf);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("user namespace") != std::string::npos);
}

TEST_CASE("CheckServer_Error_SaysWhoAndWhatToDo") {
  const Status status =
      CheckServer(Way({{0, kDir}, {0, kSticky}, {kOther, S_IFDIR | 0700}}, kOther), Peer{1, kOther, 1}, kSelf);
  REQUIRE_FALSE(status.ok());
  for (const char* part :
       {"/1/2/3/broker.sock", "user 1001", "user 1000", "others may put files into /1/", "/run/gridloom"}) {
    INFO(status.error().message);
    CHECK(status.error().message.find(part) != std::string::npos);
  }
}

/// A folder that is gone afterwards, and a socket on which somebody listens in it.
struct Place {
  std::string folder;
  explicit Place(std::string pattern) {
    if (mkdtemp(pattern.data()) != nullptr) folder = pattern;
  }
  ~Place() {
    std::error_code error;
    if (!folder.empty()) fs::remove_all(folder, error);
  }
};

Fd ListenAt(const std::string& path) {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(fd.get(), 4) != 0)
    return {};
  chmod(path.c_str(), 0666);
  return fd;
}

TEST_CASE("WalkTo_PassesEveryFolderAndLink") {
  const Place place("/tmp/gridloom-way-XXXXXX");
  REQUIRE_FALSE(place.folder.empty());
  fs::create_directories(place.folder + "/real/inner");
  fs::create_symlink("real", place.folder + "/link");
  fs::create_symlink(place.folder + "/link/inner/../socket", place.folder + "/real/inner/there");
  const Fd listener = ListenAt(place.folder + "/real/socket");
  REQUIRE(listener);
  const auto way = WalkTo(place.folder + "/link/./inner//there");
  if (!way.ok()) FAIL(way.error().message);
  std::string passed;
  for (const PathStep& step : way->steps)
    passed += step.path.substr(std::min(step.path.size(), place.folder.size())) + ";";
  CHECK(passed == ";;;/link;/real;/real/inner;/real/inner/there;;;/link;/real;/real/inner;");
  CHECK(way->socket.path == place.folder + "/real/socket");
  CHECK(way->folder.path == place.folder + "/real");
  CHECK_FALSE(WalkTo(place.folder + "/nothing").ok());
  CHECK_FALSE(WalkTo(place.folder + "/real").ok());
  fs::create_symlink("circle", place.folder + "/circle");
  CHECK(WalkTo(place.folder + "/circle/socket").error().message.find("cannot follow") != std::string::npos);
}

TEST_CASE("Connect_ToABrokerOfOnesOwn_Works") {
  const Place place("/tmp/gridloom-own-XXXXXX");
  const auto listener = Listen(place.folder + "/socket", 0600);
  REQUIRE(listener.ok());
  const auto connected = Connect(place.folder + "/socket");
  if (!connected.ok()) FAIL(connected.error().message);
}

/// How many bytes a program with a secret says to a server that runs as another user in a folder that was given to that
/// user. Nothing: it could not be tried here. `*error`: what the program is told.
std::optional<std::size_t> BytesSaidTo(const std::string& folder, std::string* error) {
  constexpr uid_t kMallory = 23456;
  if (geteuid() != 0 || folder.empty() || chown(folder.c_str(), kMallory, kMallory) != 0 ||
      chmod(folder.c_str(), 0755) != 0)
    return {};
  int ready[2], heard[2];
  if (pipe(ready) != 0 || pipe(heard) != 0) return {};
  const std::string path = folder + "/broker.sock";
  const pid_t mallory = fork();
  if (mallory == 0) {
    std::uint64_t bytes = 0;
    if (setgid(kMallory) == 0 && setuid(kMallory) == 0) {
      const Fd listener = ListenAt(path);
      static_cast<void>(!write(ready[1], "x", 1));
      const Fd victim(accept(listener.get(), nullptr, nullptr));
      char part[1000];
      const ssize_t size = recv(victim.get(), part, sizeof part, 0);
      bytes = size > 0 ? static_cast<std::uint64_t>(size) : 0;
    }
    static_cast<void>(!write(heard[1], &bytes, sizeof bytes));
    _exit(0);
  }
  char byte = 0;
  std::uint64_t bytes = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  Client::Options options;
  options.socket = path;
  options.token = "a-long-secret";
  options.reconnect = false;
  const auto client = Client::Connect(options);
  if (!client.ok()) *error = client.error().message;
  REQUIRE(read(heard[0], &bytes, sizeof bytes) == sizeof bytes);
  REQUIRE(waitpid(mallory, nullptr, 0) == mallory);
  for (const int fd : {ready[0], ready[1], heard[0], heard[1]}) close(fd);
  return bytes;
}

TEST_CASE("Client_WhoseSocketAnotherUserMadeFirst_SaysNothing") {
  const Place place("/tmp/gridloom-first-XXXXXX");
  std::string error;
  const auto bytes = BytesSaidTo(place.folder, &error);
  if (!bytes) {
    WARN("only root can try a server of another user");
    return;
  }
  CHECK(*bytes == 0);
  CHECK(error.find("user 23456") != std::string::npos);
}

TEST_CASE("Client_OfABrokerThatRootGaveToAnotherUser_SaysItsSecret") {
  const Place place("/run/gridloom-test-XXXXXX");
  std::string error;
  const auto bytes = BytesSaidTo(place.folder, &error);
  if (!bytes) {
    WARN("only root can try a server of another user");
    return;
  }
  INFO(error);
  CHECK(*bytes != 0);
}

}  // namespace
}  // namespace gridloom::protocol
