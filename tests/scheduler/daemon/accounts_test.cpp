#include "scheduler/daemon/accounts.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "scheduler/daemon/audit.h"
#include "scheduler/daemon/limits_file.h"
#include "tests/file_size_limit.h"

namespace gridloom::broker {
namespace {

struct Folder {
  std::string path = [] {
    char name[] = "/tmp/gridloom-accounts-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST_CASE("ReadAccounts_WhatWasWritten_ComesBack") {
  const Folder folder;
  const std::string path = folder.path + "/accounts.json";
  CHECK(ReadAccounts(path)->empty());
  Accounts accounts;
  accounts["alice"] = {
      .launches = 3, .faults = 1, .slices = 9, .ctas = 1ull << 60, .copied_bytes = 7, .peak_memory_bytes = 8, .device_seconds = 1.5};
  REQUIRE(WriteAccounts(path, accounts).ok());
  const auto read = ReadAccounts(path);
  REQUIRE(read.ok());
  CHECK(read->at("alice").ctas == 1ull << 60);
  CHECK(read->at("alice").device_seconds == 1.5);
  CHECK(read->at("alice").faults == 1);
}

TEST_CASE("ReadAccounts_DamagedFile_IsAnErrorNotAnEmptyAccount") {
  const Folder folder;
  const std::string path = folder.path + "/accounts.json";
  for (const char* text : {"", "{", "[]", R"({"version":1})", R"({"version":2,"tenants":{}})", R"({"version":"1","tenants":{}})",
                           R"({"version":1,"tenants":{"a":{"ctas":-1}}})", R"({"version":1,"tenants":{"a":{"ctas":1e300}}})",
                           R"({"version":1,"tenants":{"a":{"ctas":"x"}}})"}) {
    std::ofstream(path) << text;
    CHECK_FALSE(ReadAccounts(path).ok());
  }
}

TEST_CASE("WriteAccounts_ThatFails_LeavesTheOldFile") {
  const Folder folder;
  const std::string path = folder.path + "/accounts.json";
  REQUIRE(WriteAccounts(path, {{"alice", {.launches = 1}}}).ok());
  std::filesystem::create_directory(path + ".new");  // the new file cannot be made
  CHECK_FALSE(WriteAccounts(path, {{"alice", {.launches = 2}}}).ok());
  CHECK(ReadAccounts(path)->at("alice").launches == 1);
}

TEST_CASE("StateFiles_OnAFullDisk_KeepWhatTheyHad") {
  const Folder folder;
  const std::string path = folder.path + "/accounts.json", log = folder.path + "/audit.jsonl";
  REQUIRE(WriteAccounts(path, {{"alice", {.launches = 1}}}).ok());
  auto audit = Audit::Open(log);
  REQUIRE(audit.ok());
  audit->Note("first", {{"n", 1}});
  const auto whole = std::filesystem::file_size(log);
  {
    const test::FileSizeLimit limit(whole + 10);            // in the middle of the second line, and of the accounts
    const sighandler_t handler = signal(SIGXFSZ, SIG_IGN);  // as the broker has it
    audit->Note("second", {{"n", 2}});
    signal(SIGXFSZ, handler);
    CHECK_FALSE(WriteAccounts(path, {{"alice", {.launches = 2}}}).ok());
  }
  CHECK(audit->lost() == 1);
  CHECK(std::filesystem::file_size(log) == whole);
  CHECK(ReadAccounts(path)->at("alice").launches == 1);
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_CASE("StateFiles_ThatCannotBeRead_AreErrors") {
  const Folder folder;
  CHECK(ReadAccounts(folder.path).error().message == "cannot read " + folder.path + ": Is a directory");
  CHECK(ReadLimits(folder.path).error().message == "cannot read " + folder.path + ": Is a directory");
  DaemonConfig config;
  CHECK(LoadConfig(folder.path, &config).error().message == "cannot read " + folder.path + ": Is a directory");
}

TEST_CASE("ParseLimits_NumbersThatNoLimitHolds_AreErrors") {
  const auto with = [](const std::string& memory) {
    const std::string limits = R"({"weight":1,"cap":1,"priority":0,"in_flight":1,"memory_bytes":)" + memory + "}";
    return ParseLimits(R"({"version":1,"tenants":{"a":{"configured":)" + limits + R"(,"now":)" + limits + "}}}", "limits.json");
  };
  CHECK(with("5")->at("a").now.memory_bytes == 5);
  for (const char* memory : {"-1", "1e300", "0.5", "\"5\"", "null", "99999999999999999999"}) CHECK_FALSE(with(memory).ok());
  CHECK_FALSE(ParseLimits(R"({"version":"1","tenants":{}})", "limits.json").ok());
}

}  // namespace
}  // namespace gridloom::broker
