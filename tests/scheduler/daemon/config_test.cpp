#include "scheduler/daemon/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "scheduler/daemon/tenants.h"

namespace gridloom::broker {
namespace {

std::string ErrorOf(std::string_view text) {
  DaemonConfig config;
  const Status status = ApplyConfig(text, "broker.yaml", &config);
  return status.ok() ? "" : status.error().message;
}

std::string SecretFile(const std::string& text, mode_t mode) {
  char path[] = "/tmp/gridloom-secret-XXXXXX";
  close(mkstemp(path));
  std::ofstream(path) << text << "\n";
  chmod(path, mode);
  return path;
}

TEST_CASE("ApplyConfig_DefaultsAndTenants_AreRead") {
  DaemonConfig config;
  const Status status = ApplyConfig(
      "policy: priority\n"
      "tenants:\n"
      "  alice: {uid: 1000, weight: 2.5, memory: 4G, cap: 25%}\n"
      "  bob: {priority: -3}\n"
      "default: {weight: 7, in_flight: 3}\n",
      "broker.yaml", &config);
  REQUIRE(status.ok());
  CHECK(config.policy == "priority");
  REQUIRE(config.tenants.size() == 2);
  CHECK(config.tenants[0].uid == 1000u);
  CHECK(config.tenants[0].limits.scheduling.weight == 2.5);
  CHECK(config.tenants[0].limits.scheduling.cap == 0.25);
  CHECK(config.tenants[0].limits.scheduling.in_flight == 3);
  CHECK(config.tenants[0].limits.memory_bytes == std::uint64_t{4} << 30);
  CHECK(config.tenants[1].limits.scheduling.weight == 7);
  CHECK(config.tenants[1].limits.scheduling.priority == -3);
}

TEST_CASE("ApplyConfig_UnknownKey_NamesTheNearest") {
  CHECK(ErrorOf("polcy: fair\n").find("did you mean 'policy'?") != std::string::npos);
  CHECK(ErrorOf("tenants:\n  a: {wieght: 2}\n").find("did you mean 'weight'?") != std::string::npos);
  CHECK(ErrorOf("tenants:\n  a: {wieght: 2}\n").find("broker.yaml:2") != std::string::npos);
}

TEST_CASE("ApplyConfig_WrongValue_SaysWhatIsExpected") {
  CHECK(ErrorOf("policy: best\n").find("expected a policy") != std::string::npos);
  CHECK(ErrorOf("tenants:\n  a: {memory: lots}\n").find("expected bytes such as 4G") != std::string::npos);
  CHECK(ErrorOf("tenants:\n  a: {cap: 130%}\n").find("expected a part") != std::string::npos);
  CHECK(ErrorOf("tenants:\n  a: {weight: 0}\n").find("tenant a: a weight has to be above 0") != std::string::npos);
  CHECK(ErrorOf("tenants:\n  a: {in_flight: 0}\n").find("in_flight") != std::string::npos);
}

TEST_CASE("ReadSecret_FileThatOthersMayRead_IsRefused") {
  const std::string open = SecretFile("a-long-secret", 0644), closed = SecretFile("a-long-secret", 0600), trivial = SecretFile("x", 0600);
  CHECK(ReadSecret(open).error().message.find("chmod 600") != std::string::npos);
  CHECK(*ReadSecret(closed) == "a-long-secret");
  CHECK_FALSE(ReadSecret(trivial).ok());
  for (const std::string& path : {open, closed, trivial}) unlink(path.c_str());
}

TEST_CASE("Identify_NamesUsersAndTokens") {
  DaemonConfig config;
  config.tenants.push_back({.name = "alice", .uid = 12345, .token = {}, .limits = {}});
  config.tenants.push_back({.name = "bob", .uid = {}, .token = "bobs-secret", .limits = {}});
  Tenants tenants(config, {});
  const protocol::Peer alice{.pid = 1, .uid = 12345, .gid = 1}, stranger{.pid = 2, .uid = 54321, .gid = 1};
  CHECK((*tenants.Identify(alice, "", ""))->config.name == "alice");
  CHECK((*tenants.Identify(alice, "alice", ""))->config.name == "alice");
  CHECK_FALSE(tenants.Identify(stranger, "alice", "").ok());
  CHECK_FALSE(tenants.Identify(stranger, "bob", "").ok());
  CHECK_FALSE(tenants.Identify(stranger, "bob", "bobs-secre").ok());
  CHECK_FALSE(tenants.Identify(stranger, "bob", "bobs-secret2").ok());
  CHECK((*tenants.Identify(stranger, "bob", "bobs-secret"))->config.name == "bob");
  CHECK_FALSE(tenants.Identify(stranger, "carol", "").ok());
  CHECK((*tenants.Identify(stranger, "", ""))->config.name == "uid-54321");
  const protocol::Peer own{.pid = 3, .uid = geteuid(), .gid = 1};
  CHECK((*tenants.Identify(own, "carol", ""))->config.name == "carol");
}

}  // namespace
}  // namespace gridloom::broker
