// The broker's state folder against those who prepare it, full disks, slow disks and tenants that fill the audit log.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "scheduler/daemon/audit.h"
#include "scheduler/daemon/state_folder.h"
#include "scheduler/daemon/state_writer.h"
#include "scheduler/protocol/wait.h"
#include "tests/scheduler/daemon/broker_fixture.h"

namespace gridloom::broker {
namespace {

namespace fs = std::filesystem;
using protocol::Verdict;

constexpr std::uint64_t kNsPerS = 1'000'000'000;

struct Folder {
  std::string path = [] {
    char name[] = "/tmp/gridloom-state-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  std::string state = path + "/state";
  ~Folder() { fs::remove_all(path); }
};

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string WhyNot(const std::string& path) {
  const auto folder = StateFolder::Open(path);
  return folder.ok() ? "" : folder.error().message;
}

TEST_CASE("StateFolder_ThatIsNotTheBrokersAlone_IsRefusedByName") {
  const Folder f;
  fs::create_directory(f.path + "/real");
  fs::create_directory_symlink(f.path + "/real", f.state);
  CHECK(WhyNot(f.state) == "the state folder " + f.state + " is a link; name the folder itself");
  CHECK(WhyNot(f.state + "/") == "the state folder " + f.state + " is a link; name the folder itself");
  fs::remove(f.state);
  std::ofstream(f.state) << "a file";
  CHECK(WhyNot(f.state).find("is no folder") != std::string::npos);
  fs::remove(f.state);
  fs::create_directory(f.state);
  for (const mode_t mode : {0770, 0707, 0777}) {
    REQUIRE(chmod(f.state.c_str(), mode) == 0);
    CHECK(WhyNot(f.state).find("others may write into the state folder") != std::string::npos);
  }
  REQUIRE(chmod(f.state.c_str(), 0755) == 0);
  CHECK(WhyNot(f.state).empty());
  CHECK((fs::status(f.state).permissions() & fs::perms::all) == fs::perms::owner_all);
  if (geteuid() == 0) {
    REQUIRE(chown(f.state.c_str(), 12345, 12345) == 0);
    CHECK(WhyNot(f.state) == "the state folder " + f.state + " belongs to user 12345, not to the broker's (0)");
  }
}

TEST_CASE("StateFolder_OfTwoBrokers_IsTheFirstOnes") {
  const Folder f;
  auto first = StateFolder::Open(f.state);
  REQUIRE(first.ok());
  CHECK(WhyNot(f.state).find("another broker keeps its state in") != std::string::npos);
  first = Error{"gone"};
  CHECK(WhyNot(f.state).empty());
}

TEST_CASE("StateFiles_ThatLeadElsewhere_AreNeitherReadNorWritten") {
  const Folder f;
  auto folder = StateFolder::Open(f.state);
  REQUIRE(folder.ok());
  const std::string victim = f.path + "/victim";
  std::ofstream(victim) << "precious";
  for (const char* how : {"symbolic", "hard", "pipe"}) {
    INFO(how);
    for (const char* name : {"accounts.json", "accounts.json.new", "audit.jsonl", "audit.jsonl.1", "reserve"}) {
      const std::string path = f.state + "/" + name;
      fs::remove(path);
      if (*how == 's') fs::create_symlink(victim, path);
      else if (*how == 'h') fs::create_hard_link(victim, path);
      else REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    }
    CHECK_FALSE(folder->Read("accounts.json").ok());
    CHECK_FALSE(AuditLog::Open(*folder, {}).ok());
    CHECK(folder->Replace("accounts.json", "new").ok());  // in the link's place, not through it
    CHECK(*folder->Read("accounts.json").value() == "new");
    CHECK(TextOf(victim) == "precious");
    CHECK(fs::file_size(victim) == 8);
  }
}

/// A disk that is full as long as room is kept on it.
class FullDisk final : public Disk {
 public:
  explicit FullDisk(std::string room) : room_(std::move(room)) {}
  int Write(int file, std::string_view bytes) override {
    return full && fs::exists(room_) ? ENOSPC : Disk::Write(file, bytes);
  }
  std::atomic<bool> full{false};

 private:
  const std::string room_;
};

TEST_CASE("Replace_OnAFullDisk_HasTheRoomThatWasKept") {
  const Folder f;
  const auto disk = std::make_shared<FullDisk>(f.state + "/reserve");
  auto folder = StateFolder::Open(f.state, disk);
  REQUIRE(folder.ok());
  REQUIRE(folder->Replace("accounts.json", "first").ok());
  REQUIRE(fs::file_size(f.state + "/reserve") >= 256 << 10);
  disk->full = true;
  for (const char* text : {"second", "third"}) {
    CHECK(folder->Replace("accounts.json", text).ok());
    CHECK(*folder->Read("accounts.json").value() == text);
    CHECK(fs::exists(f.state + "/reserve"));  // kept again, as far as the disk has it
  }
  auto audit = AuditLog::Open(*folder, {});
  REQUIRE(audit.ok());
  CHECK_FALSE(audit->Write("a line that may not take that room\n"));
}

TEST_CASE("Replace_WithoutDescriptors_HasTheOneThatWasKept") {
  const Folder f;
  auto folder = StateFolder::Open(f.state);
  REQUIRE(folder.ok());
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int next = dup(0);  // the number that the next descriptor would have
  REQUIRE(close(next) == 0);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const bool nothing_left = dup(0) < 0, replaced = folder->Replace("accounts.json", "text").ok();
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(nothing_left);
  CHECK(replaced);
}

TEST_CASE("AuditThrottle_ManyLinesOfOneKind_BecomeACount") {
  AuditThrottle throttle(60);
  std::uint64_t now = 5 * kNsPerS;
  int written = 0;
  for (int i = 0; i < 10'000; ++i) written += throttle.Admit("memory_refused", "liar", now) ? 1 : 0;
  CHECK(written == kAuditBurst);
  CHECK(throttle.Admit("memory_refused", "honest", now));  // others' lines, and others of the same one
  CHECK(throttle.Admit("violation", "liar", now));
  CHECK(throttle.Tell(now).empty());
  now += 10 * kNsPerS;
  const auto told = throttle.Tell(now);
  REQUIRE(told.size() == 1);
  CHECK(told[0].event == "memory_refused");
  CHECK(told[0].subject == "liar");
  CHECK(told[0].lines == 10'000 - kAuditBurst);
  CHECK(throttle.due() == 0);
  written = 0;
  for (int i = 0; i < 10'000; ++i) written += throttle.Admit("memory_refused", "liar", now) ? 1 : 0;
  CHECK(written == 10);  // one a second
  CHECK(throttle.Tell(now, true).size() == 1);
}

TEST_CASE("AuditThrottle_ManySubjects_TakeBoundedMemory") {
  AuditThrottle throttle(60);
  int written = 0;
  for (std::uint64_t i = 0; i < 50'000; ++i)
    written += throttle.Admit("refused", "uid " + std::to_string(i), kNsPerS + i) ? 1 : 0;
  CHECK(throttle.subjects() <= 8192 + 1);
  CHECK(written <= 8192 + static_cast<int>(kAuditBurst) + 1);
}

TEST_CASE("AuditLog_ThatGrows_IsPutAsideAndBounded") {
  const Folder f;
  auto folder = StateFolder::Open(f.state);
  REQUIRE(folder.ok());
  std::ofstream(f.state + "/audit.jsonl.7") << "of a configuration with more files\n";
  auto audit = AuditLog::Open(*folder, {.file_bytes = 4096, .files = 3});
  REQUIRE(audit.ok());
  CHECK_FALSE(fs::exists(f.state + "/audit.jsonl.7"));
  for (int i = 0; i < 1000; ++i) REQUIRE(audit->Write(AuditLine({}, "event", {{"n", i}})));
  std::uint64_t bytes = 0;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(f.state)) {
    ++files;
    bytes += entry.file_size();
  }
  CHECK(files == 3);
  CHECK(bytes <= 3 * 4096);
  CHECK(TextOf(f.state + "/audit.jsonl").find("\"n\":999") != std::string::npos);
}

TEST_CASE("Audit_OfATenantThatIsRefusedMemory_IsACount") {
  BrokerFixture f;
  f.Start();
  const auto client = f.Join("liar");
  for (int i = 0; i < 5000; ++i) REQUIRE_FALSE(client->Reserve(2 << 20));
  f.Stop();
  std::istringstream lines(TextOf(f.config.state + "/audit.jsonl"));
  std::uint64_t written = 0, counted = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["event"] != "memory_refused") continue;
    if (json.contains("more_like_it")) counted += json["more_like_it"].get<std::uint64_t>();
    else ++written;
  }
  CHECK(written < 200);
  CHECK(written + counted == 5000);
}

/// A disk on which everything takes long.
class SlowDisk final : public Disk {
 public:
  int Write(int file, std::string_view bytes) override {
    if (slow) usleep(100'000);
    return Disk::Write(file, bytes);
  }
  int Sync(int file) override {
    if (slow) {
      ++syncs;
      usleep(800'000);
    }
    return Disk::Sync(file);
  }
  std::atomic<bool> slow{true};
  std::atomic<int> syncs{0};
};

TEST_CASE("Launches_OnASlowDisk_DoNotWaitForIt") {
  BrokerFixture f;
  const auto disk = std::make_shared<SlowDisk>();
  f.disk = disk;
  f.Start();
  const auto client = f.Join("alice");
  std::uint64_t longest = 0, launches = 0;
  const std::uint64_t begin = protocol::NowNs();
  while (protocol::NowNs() - begin < 2 * kNsPerS) {
    const std::uint64_t at = protocol::NowNs();
    REQUIRE(RunLaunch(*client, 4) == Verdict::kGranted);
    longest = std::max(longest, protocol::NowNs() - at);
    ++launches;
    if (launches % 1000 == 1)
      REQUIRE(
          f.Ask({.verb = protocol::Verb::kLimits, .target = "alice", .fields = protocol::kFieldWeight, .weight = 2}));
  }
  CHECK(disk->syncs >= 2);
  CHECK(longest < kNsPerS / 2);  // a sync takes longer
  f.Stop();
  // And all of it is there in the end.
  auto folder = StateFolder::Open(f.config.state);
  REQUIRE(folder.ok());
  CHECK(ReadAccounts(*folder)->at("alice").launches == launches);
  CHECK(ReadLimits(*folder)->at("alice").now.scheduling.weight == 2);
}

/// One that takes nothing for a while.
class RefusingDisk final : public Disk {
 public:
  int Write(int file, std::string_view bytes) override { return refuses ? EIO : Disk::Write(file, bytes); }
  std::atomic<bool> refuses{false};
};

TEST_CASE("Lines_ThatTheDiskRefuses_AreCountedAndTold") {
  const Folder f;
  const auto disk = std::make_shared<RefusingDisk>();
  auto folder = StateFolder::Open(f.state, disk);
  REQUIRE(folder.ok());
  const auto writer =
      StateWriter::Start(std::make_unique<StateFolder>(std::move(folder).value()), {}, {}, [](const std::string&) {
      }).value();
  disk->refuses = true;
  for (int i = 0; i < 3; ++i) writer->Note("policy", {{"n", i}});
  writer->SaveAccounts({{"alice", {.launches = 7}}});
  writer->Drain();
  CHECK(writer->lost() == 3);
  disk->refuses = false;
  writer->Note("policy", {{"n", 3}});
  writer->Finish();
  const std::string text = TextOf(f.state + "/audit.jsonl");
  CHECK(text.find("\"event\":\"lost\",\"lines\":3") != std::string::npos);
  CHECK(text.find("\"n\":3") != std::string::npos);
  CHECK(TextOf(f.state + "/accounts.json").find("\"launches\": 7") != std::string::npos);
}

}  // namespace
}  // namespace gridloom::broker
