// Logs: levels, the pattern, and files that many write to and that are bounded.
#include "rewriter/support/log.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <thread>
#include <vector>

using namespace gridloom;

namespace {

class LogFolder {
 public:
  LogFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "log-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~LogFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

Logger Open(const std::string& path, LogLevel level = LogLevel::kInfo, const LogBounds& bounds = {}) {
  auto logger = Logger::ToFile(path, level, bounds);
  REQUIRE(logger.ok());
  return std::move(logger).value();
}

/// Whether the child ended well in time.
bool EndsWell(pid_t child) {
  int status = 0;
  for (int tries = 0; tries < 1000; ++tries) {
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    usleep(10'000);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return false;
}
template <typename Body>
pid_t Child(Body body) {
  const pid_t child = fork();
  if (child != 0) return child;
  body();
  _exit(0);
}

}  // namespace

TEST_CASE("Log_LinesOfALevel_HaveThePattern") {
  const LogFolder folder;
  const std::string path = folder / "log";
  const Logger logger = Open(path);
  logger.Write(LogLevel::kDebug, "not wanted");
  logger.Write(LogLevel::kWarn, "a kernel {} %s");
  logger.Write(LogLevel::kError, "red \x1b[31m");
  logger.WriteText("a table\nof two rows\n");
  const auto lines = LinesOf(path);
  REQUIRE(lines.size() == 4);
  const std::regex prefix(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \[)" + std::to_string(getpid()) +
                          R"(\] gridloom: (.*))");
  std::smatch match;
  REQUIRE(std::regex_match(lines[0], match, prefix));
  CHECK(match[1] == "warn: a kernel {} %s");
  REQUIRE(std::regex_match(lines[1], match, prefix));
  CHECK(match[1] == "error: red \\x1b[31m");
  CHECK(lines[2] == "a table");
  CHECK(logger.Enabled(LogLevel::kInfo));
  CHECK_FALSE(logger.Enabled(LogLevel::kDebug));
  CHECK_FALSE(Logger(LogLevel::kOff).Enabled(LogLevel::kError));
}

TEST_CASE("Log_NamesOfLevels") {
  CHECK(LogLevelNames() == "off, error, warn, info, debug, trace");
  CHECK(ParseLogLevel("Debug") == LogLevel::kDebug);
  CHECK(ParseLogLevel("off") == LogLevel::kOff);
  CHECK_FALSE(ParseLogLevel("").has_value());
  CHECK_FALSE(ParseLogLevel("warning").has_value());
}

TEST_CASE("Log_FileThatCannotBeOpened_IsAnError") {
  const LogFolder folder;
  CHECK_FALSE(Logger::ToFile(folder / "missing/log", LogLevel::kInfo).ok());
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_FALSE(Logger::ToFile(pipe, LogLevel::kInfo).ok());  // nobody reads it; it does not wait for a reader
  CHECK(Logger::ToFile("/dev/null", LogLevel::kInfo).ok());
}

TEST_CASE("Log_OfManyWriters_IsBoundedAndLosesNoLineOfTheFilesThatStay") {
  const LogFolder folder;
  const std::string path = folder / "log";
  constexpr LogBounds kBounds{.file_bytes = 20'000, .files = 50};
  constexpr int kProcesses = 3, kThreads = 4, kLines = 300;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(Child([&] {
      const auto logger = Logger::ToFile(path, LogLevel::kInfo, kBounds);
      std::vector<std::thread> threads;
      for (int thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
          for (int line = 0; line < kLines; ++line)
            logger->Write(LogLevel::kInfo,
                          std::to_string(process) + " " + std::to_string(thread) + " " + std::to_string(line));
        });
      for (std::thread& thread : threads) thread.join();
    }));
  }
  for (const pid_t child : children) CHECK(EndsWell(child));
  std::map<std::string, int> seen;
  for (std::uint32_t place = 0; place < kBounds.files; ++place) {
    const std::string name = place == 0 ? path : path + "." + std::to_string(place);
    if (!std::filesystem::exists(name)) continue;
    // A line may go to a file that is just being put aside: at most one a thread.
    CHECK(std::filesystem::file_size(name) < kBounds.file_bytes + kProcesses * kThreads * 100);
    for (const std::string& line : LinesOf(name)) ++seen[line.substr(line.find("info: "))];
  }
  CHECK(seen.size() == kProcesses * kThreads * kLines);
  for (const auto& [line, count] : seen) CHECK(count == 1);
}

TEST_CASE("Log_ThatIsFull_KeepsTheNewestFiles") {
  const LogFolder folder;
  const std::string path = folder / "log";
  const auto files = GENERATE(1u, 2u, 3u);
  const Logger logger = Open(path, LogLevel::kInfo, {.file_bytes = 1000, .files = files});
  for (int line = 0; line < 200; ++line) logger.Write(LogLevel::kInfo, "line " + std::to_string(line));
  CHECK(folder.files() == files);
  CHECK(LinesOf(path).back().ends_with("line 199"));
  logger.Write(LogLevel::kInfo, std::string(5000, 'x'));  // larger than a file may be: it has one to itself
  CHECK(LinesOf(path).size() == 1);
  if (files > 1) CHECK(LinesOf(path + ".1").back().ends_with("line 199"));
}

TEST_CASE("Log_WhereNothingCanBePutAside_LosesLinesInsteadOfGrowing") {
  if (geteuid() == 0) {
    // Root may rename wherever it likes, but not onto a folder.
    const LogFolder folder;
    const std::string path = folder / "log";
    REQUIRE(mkdir((path + ".1").c_str(), 0700) == 0);
    REQUIRE(mkdir((path + ".1/x").c_str(), 0700) == 0);
    const Logger logger = Open(path, LogLevel::kInfo, {.file_bytes = 1000, .files = 2});
    for (int line = 0; line < 200; ++line) logger.Write(LogLevel::kInfo, "line");
    CHECK(std::filesystem::file_size(path) <= 1000);
    return;
  }
  const LogFolder folder;
  REQUIRE(mkdir((folder / "closed").c_str(), 0700) == 0);
  const std::string path = folder / "closed/log";
  const Logger logger = Open(path, LogLevel::kInfo, {.file_bytes = 1000, .files = 2});
  REQUIRE(chmod((folder / "closed").c_str(), 0500) == 0);
  for (int line = 0; line < 200; ++line) logger.Write(LogLevel::kInfo, "line");
  CHECK(std::filesystem::file_size(path) <= 1000);
  REQUIRE(chmod((folder / "closed").c_str(), 0700) == 0);
}

// AddressSanitizer's allocator (GCC 12) may be locked by another thread when the process forks, and stays so in the
// child.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("Log_InAForkedChild_WhileOthersWrite") {
  const LogFolder folder;
  const Logger logger = Open(folder / "log", LogLevel::kInfo, {.file_bytes = 5000, .files = 2});
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 2; ++writer)
    writers.emplace_back([&] {
      while (!stop) logger.Write(LogLevel::kInfo, "parent");
    });
  for (int round = 0; round < 50; ++round) {
    const pid_t child = Child([&] {
      for (int line = 0; line < 20; ++line) logger.Write(LogLevel::kInfo, "child");
    });
    CHECK(EndsWell(child));
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}
#endif
