#include "scheduler/daemon/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "scheduler/daemon/tenants.h"
#include "scheduler/protocol/secret.h"

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

TEST_CASE("ApplyConfig_BoundsOfPlacesAndOfTheAuditLog_AreRead") {
  DaemonConfig config;
  const Status status =
      ApplyConfig("most_sessions_per_user: 7\naudit_file: 1M\naudit_files: 2\naudit_lines_per_minute: 600\n",
                  "broker.yaml", &config);
  REQUIRE(status.ok());
  CHECK(config.most_sessions_per_user == 7);
  CHECK(config.audit.file_bytes == 1 << 20);
  CHECK(config.audit.files == 2);
  CHECK(config.audit.lines_per_minute == 600);
  for (const char* wrong : {"most_sessions_per_user: 0\n", "audit_file: 100\n", "audit_files: 0\n",
                            "audit_files: 101\n", "audit_lines_per_minute: 0\n"}) {
    CHECK(ErrorOf(wrong).find("expected") != std::string::npos);
  }
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
  const std::string open = SecretFile("a-long-secret", 0644), closed = SecretFile("a-long-secret", 0600),
                    trivial = SecretFile("x", 0600);
  CHECK(protocol::ReadSecret(open, true).error().message.find("chmod 600") != std::string::npos);
  CHECK(*protocol::ReadSecret(open, false) == "a-long-secret");  // a tenant's own: a group may share it
  CHECK(*protocol::ReadSecret(closed, true) == "a-long-secret");
  CHECK_FALSE(protocol::ReadSecret(trivial, true).ok());
  for (const std::string& path : {open, closed, trivial}) unlink(path.c_str());
}

TEST_CASE("ReadSecret_AnyBytesButZeroAndTheLineEnd_AreASecret") {
  const std::string bytes = "p\xc3\xa4ssw\xff\x01\x80rd";
  const std::string file = SecretFile(bytes + "\nand another line", 0600), zero = SecretFile(std::string("12345\0"
                                                                                                         "6789",
                                                                                                         10),
                                                                                             0600);
  const std::string longest = SecretFile(std::string(200, 'x') + "\n", 0600),
                    longer = SecretFile(std::string(201, 'x') + "\n", 0600);
  CHECK(*protocol::ReadSecret(file, true) == bytes);
  CHECK(protocol::ReadSecret(zero, true).error().message.find("none of them zero") != std::string::npos);
  CHECK(protocol::ReadSecret(longest, true)->size() == 200);
  CHECK_FALSE(protocol::ReadSecret(longer, true).ok());
  CHECK_FALSE(protocol::ReadSecret(file + "-that-is-not-there", true).ok());
  for (const std::string& path : {file, zero, longest, longer}) unlink(path.c_str());
}

TEST_CASE("ApplyConfig_NameThatNobodyCouldSay_IsAnError") {
  CHECK(ErrorOf("tenants:\n  zo\xc3\xab: {weight: 2}\n").find("broker.yaml:2: the name of a tenant") !=
        std::string::npos);
  CHECK(ErrorOf("tenants:\n  " + std::string(61, 'a') + ": {weight: 2}\n").find("the name of a tenant") !=
        std::string::npos);
}

TEST_CASE("ApplyConfig_GrantTimeout_IsTenSliceTimeoutsUnlessGiven") {
  CHECK(DaemonConfig().grant_timeout() == 1200);
  DaemonConfig config;
  REQUIRE(ApplyConfig("slice_timeout_s: 30\n", "broker.yaml", &config).ok());
  CHECK(config.grant_timeout() == 300);
  REQUIRE(ApplyConfig("grant_timeout_s: 45\n", "broker.yaml", &config).ok());
  CHECK(config.grant_timeout() == 45);
  REQUIRE(ApplyConfig("grant_timeout_s: 0\n", "broker.yaml", &config).ok());
  CHECK(config.grant_timeout() == 0);
}

TEST_CASE("Identify_OfUsersWithoutANumberHere_MakesNoTenantThatTheyShare") {
  DaemonConfig config;
  config.tenants.push_back({.name = "secret", .uid = {}, .token = "a-long-secret", .limits = {}});
  config.tenants.push_back({.name = "nobody", .uid = 65534, .token = {}, .limits = {}});
  config.tenants.push_back({.name = "open", .uid = {}, .token = {}, .limits = {}});
  config.tenants.push_back({.name = "both", .uid = 65534, .token = "a-long-secret", .limits = {}});
  Tenants tenants(config, {});
  const protocol::Peer unmapped{.pid = 1, .uid = 65534, .gid = 65534, .user_known = false};
  for (const char* name : {"", "nobody", "open", "both", "uid-65534", "secret"}) {
    INFO(name);
    const auto who = tenants.Identify(unmapped, name, name == std::string("both") ? "a-long-secret" : "");
    REQUIRE_FALSE(who.ok());
    CHECK(who.error().message.find(name == std::string("secret") ? "needs its token" : "user namespace") !=
          std::string::npos);
  }
  CHECK(tenants.all().size() == 4);
  CHECK((*tenants.Identify(unmapped, "secret", "a-long-secret"))->config.name == "secret");
  const protocol::Peer known{.pid = 1, .uid = 65534, .gid = 65534};
  CHECK((*tenants.Identify(known, "", ""))->config.name == "nobody");
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
