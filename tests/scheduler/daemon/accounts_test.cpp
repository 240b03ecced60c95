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

struct AccountsFolder {
  std::string path = [] {
    char name[] = "/tmp/gridloom-accounts-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  ~AccountsFolder() { std::filesystem::remove_all(path); }
  StateFolder Open() const {
    auto folder = StateFolder::Open(path);
    if (!folder.ok()) FAIL(folder.error().message);
    return std::move(folder).value();
  }
};

TEST_CASE("ReadAccounts_WhatWasWritten_ComesBack") {
  const AccountsFolder place;
  StateFolder folder = place.Open();
  CHECK(ReadAccounts(folder)->empty());
  Accounts accounts;
  accounts["alice"] = {.launches = 3,
                       .faults = 1,
                       .slices = 9,
                       .ctas = 1ull << 60,
                       .copied_bytes = 7,
                       .peak_memory_bytes = 8,
                       .device_seconds = 1.5};
  REQUIRE(WriteAccounts(folder, accounts).ok());
  const auto read = ReadAccounts(folder);
  REQUIRE(read.ok());
  CHECK(read->at("alice").ctas == 1ull << 60);
  CHECK(read->at("alice").device_seconds == 1.5);
  CHECK(read->at("alice").faults == 1);
}

TEST_CASE("ReadAccounts_DamagedFile_IsAnErrorNotAnEmptyAccount") {
  const AccountsFolder place;
  StateFolder folder = place.Open();
  const std::string path = place.path + "/accounts.json";
  for (const char* text :
       {"", "{", "[]", R"({"version":1})", R"({"version":2,"tenants":{}})", R"({"version":"1","tenants":{}})",
        R"({"version":1,"tenants":{"a":{"ctas":-1}}})", R"({"version":1,"tenants":{"a":{"ctas":1e300}}})",
        R"({"version":1,"tenants":{"a":{"ctas":"x"}}})"}) {
    std::ofstream(path) << text;
    CHECK_FALSE(ReadAccounts(folder).ok());
  }
}

TEST_CASE("WriteAccounts_ThatFails_LeavesTheOldFile") {
  const AccountsFolder place;
  StateFolder folder = place.Open();
  REQUIRE(WriteAccounts(folder, {{"alice", {.launches = 1}}}).ok());
  std::filesystem::create_directory(place.path + "/accounts.json.new");  // the new file cannot be made
  CHECK_FALSE(WriteAccounts(folder, {{"alice", {.launches = 2}}}).ok());
  CHECK(ReadAccounts(folder)->at("alice").launches == 1);
}

TEST_CASE("StateFiles_ThatMayGrowNoFurther_KeepWhatTheyHad") {
  const AccountsFolder place;
  StateFolder folder = place.Open();
  const std::string log = place.path + "/audit.jsonl";
  REQUIRE(WriteAccounts(folder, {{"alice", {.launches = 1}}}).ok());
  auto audit = AuditLog::Open(folder, {});
  REQUIRE(audit.ok());
  REQUIRE(audit->Write(AuditLine({}, "first", {{"n", 1}})));
  const auto whole = std::filesystem::file_size(log);
  {
    const test::FileSizeLimit limit(whole + 10);            // in the middle of the second line, and of the accounts
    const sighandler_t handler = signal(SIGXFSZ, SIG_IGN);  // as the broker has it
    CHECK_FALSE(audit->Write(AuditLine({}, "second", {{"n", 2}})));
    signal(SIGXFSZ, handler);
    CHECK_FALSE(WriteAccounts(folder, {{"alice", {.launches = 2}}}).ok());
  }
  CHECK(std::filesystem::file_size(log) == whole);
  CHECK(ReadAccounts(folder)->at("alice").launches == 1);
  CHECK_FALSE(std::filesystem::exists(place.path + "/accounts.json.new"));
}

TEST_CASE("StateFiles_ThatCannotBeRead_AreErrors") {
  const AccountsFolder place;
  StateFolder folder = place.Open();
  for (const char* name : {"/accounts.json", "/limits.json"}) std::filesystem::create_directory(place.path + name);
  CHECK(ReadAccounts(folder).error().message == "cannot read " + place.path + "/accounts.json: Is a directory");
  CHECK(ReadLimits(folder).error().message == "cannot read " + place.path + "/limits.json: Is a directory");
  DaemonConfig config;
  CHECK(LoadConfig(place.path, &config).error().message == "cannot read " + place.path + ": Is a directory");
}

/// What grows with the square of their number would take minutes.
TEST_CASE("Accounts_OfManyNames_AreReadAndWrittenInProportion") {
  Accounts accounts;
  for (int i = 0; i < 60'000; ++i)
    accounts["tenant \"" + std::to_string(i) + "\""] = {.launches = static_cast<std::uint64_t>(i),
                                                        .device_seconds = 0.1};
  const clock_t begin = clock();
  const auto read = ParseAccounts(AccountsText(accounts), "accounts.json");
  CHECK(static_cast<double>(clock() - begin) / CLOCKS_PER_SEC < 20);
  REQUIRE(read.ok());
  CHECK(*read == accounts);
}

TEST_CASE("ParseLimits_NumbersThatNoLimitHolds_AreErrors") {
  const auto with = [](const std::string& memory) {
    const std::string limits = R"({"weight":1,"cap":1,"priority":0,"in_flight":1,"memory_bytes":)" + memory + "}";
    return ParseLimits(R"({"version":1,"tenants":{"a":{"configured":)" + limits + R"(,"now":)" + limits + "}}}",
                       "limits.json");
  };
  CHECK(with("5")->at("a").now.memory_bytes == 5);
  for (const char* memory : {"-1", "1e300", "0.5", "\"5\"", "null", "99999999999999999999"})
    CHECK_FALSE(with(memory).ok());
  CHECK_FALSE(ParseLimits(R"({"version":"1","tenants":{}})", "limits.json").ok());
}

}  // namespace
}  // namespace gridloom::broker
