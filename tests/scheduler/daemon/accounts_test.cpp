#include "scheduler/daemon/accounts.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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
  for (const char* text :
       {"", "{", "[]", R"({"version":1})", R"({"version":2,"tenants":{}})", R"({"version":1,"tenants":{"a":{"ctas":"x"}}})"}) {
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

}  // namespace
}  // namespace gridloom::broker
