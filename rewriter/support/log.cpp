#include "rewriter/support/log.h"

#define SPDLOG_LEVEL_NAMES \
  { "trace", "debug", "info", "warn", "error", "critical", "off" }
#include <fcntl.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "rewriter/support/printable.h"

namespace gridloom {
namespace {

constexpr std::array<const char*, 6> kNames = {"off", "error", "warn", "info", "debug", "trace"};
/// To go on with another file, while others have it locked or fill it. Then the line is lost: a log does not hold a
/// program up.
constexpr int kMostAttempts = 200;
constexpr useconds_t kPauseUs = 500;
constexpr const char* kTerminalPattern = "gridloom: %l: %v";
constexpr const char* kFilePattern = "%* [%P] gridloom: %l: %v";

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  using spdlog::level::level_enum;
  constexpr std::array<level_enum, 6> kLevels = {level_enum::off,  level_enum::err,   level_enum::warn,
                                                 level_enum::info, level_enum::debug, level_enum::trace};
  return kLevels[static_cast<std::size_t>(level)];
}

/// `%*`: a line's time in UTC. spdlog's own flags for times ask gmtime_r, whose lock of the C library a fork may leave
/// held in the child.
class UtcTime final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const auto time = std::chrono::floor<std::chrono::milliseconds>(message.time);
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(time - day);
    char text[64];
    const int size =
        std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02ld:%02ld:%02ld.%03ldZ", static_cast<int>(date.year()),
                      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                      clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
    line.append(text, text + size);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<UtcTime>(); }
};

std::unique_ptr<spdlog::pattern_formatter> FormatterOf(const std::string& pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc, "\n");
  formatter->add_flag<UtcTime>('*').set_pattern(pattern);
  return formatter;
}

/// A descriptor of an open log, or -1 with errno.
int OpenToAppend(const std::string& path) {
  // Not O_NONBLOCK for good: a pipe that is full has to hold the writer up, not lose lines. But opening one must not
  // wait for a reader.
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
  if (file >= 0) fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

}  // namespace

std::string LogLevelNames() {
  std::string names;
  for (const char* const name : kNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  const std::string text(name);
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (strcasecmp(text.c_str(), kNames[i]) == 0) return static_cast<LogLevel>(i);
  return std::nullopt;
}

/// Writes to a descriptor; a file that is full is put aside first. spdlog's own files that rotate hold a lock, which a
/// fork may leave held in the child, and believe to be their file's only writers.
class LogSink final : public spdlog::sinks::sink {
 public:
  LogSink(int file, std::string path, const LogBounds& bounds) : path_(std::move(path)), bounds_(bounds), file_(file) {
    formatter_ = FormatterOf(path_.empty() ? kTerminalPattern : kFilePattern);
  }
  ~LogSink() override {
    if (!path_.empty()) close(file_);
  }
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;

  // A formatter keeps the last time that it has written: each line gets a copy.
  void log(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->clone()->format(message, line);
    Append({line.data(), line.size()});
  }
  void flush() override {}
  void set_pattern(const std::string& pattern) override { formatter_ = FormatterOf(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override { formatter_ = std::move(formatter); }

  void Append(std::string_view text) {
    if (!path_.empty() && IsFull(file_, text.size()) && !MakeRoom(text.size())) return;
    while (!text.empty()) {
      const ssize_t written = write(file_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

 private:
  /// Only regular files are bounded.
  bool IsFull(int file, std::size_t more) const {
    struct stat info {};
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    return info.st_size != 0 && static_cast<std::uint64_t>(info.st_size) + more > bounds_.file_bytes;
  }
  /// Whether the path still leads to the open file: another process may have put it aside.
  bool IsCurrent(int file) const {
    struct stat open {};
    struct stat named {};
    return fstat(file, &open) == 0 && stat(path_.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
           open.st_dev == named.st_dev;
  }
  /// Of several writers, threads and processes, each finds the file full and one puts it aside. All of them go on with
  /// the new one, whose descriptor takes the number of the old one: a thread that is about to write writes to either.
  /// False: there is no room.
  bool MakeRoom(std::size_t more) const {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const int file = OpenToAppend(path_);
      if (file < 0) return false;
      const Taken taken = Take(file, more);
      close(file);
      if (taken != Taken::kNotYet) return taken == Taken::kYes;
    }
    return false;
  }
  enum class Taken : std::uint8_t { kYes, kNo, kNotYet };
  /// One attempt, with the file as it is found under the path. A lock of the file keeps others away; it is taken back
  /// by its name, as a child that was forked meanwhile has the descriptor, too.
  Taken Take(int file, std::size_t more) const {
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
      usleep(kPauseUs);
      return Taken::kNotYet;
    }
    const bool current = IsCurrent(file), full = IsFull(file, more);
    const bool aside = current && full && PutAside();
    flock(file, LOCK_UN);
    if (current && full) return aside ? Taken::kNotYet : Taken::kNo;
    if (!current) return Taken::kNotYet;
    return dup3(file, file_, O_CLOEXEC) >= 0 ? Taken::kYes : Taken::kNo;
  }
  bool PutAside() const {
    if (bounds_.files < 2) return unlink(path_.c_str()) == 0;
    for (std::uint32_t place = bounds_.files - 1; place > 0; --place) {
      const std::string from = place == 1 ? path_ : path_ + "." + std::to_string(place - 1);
      const bool moved = rename(from.c_str(), (path_ + "." + std::to_string(place)).c_str()) == 0;
      if (!moved && place == 1) return false;  // those in between may not have come yet
    }
    return true;
  }

  const std::string path_;  ///< empty: standard error
  const LogBounds bounds_;
  const int file_;
  std::unique_ptr<spdlog::formatter> formatter_;
};

Logger::Logger(LogLevel level, std::shared_ptr<LogSink> sink)
    : level_(level), sink_(std::move(sink)), logger_(std::make_unique<spdlog::logger>("gridloom", sink_)) {
  logger_->set_level(SpdlogLevel(level));
  logger_->set_error_handler([](const std::string&) {});  // no memory, say: the line is lost
}

Logger::Logger(LogLevel level) : Logger(level, std::make_shared<LogSink>(STDERR_FILENO, "", LogBounds{})) {}

Result<Logger> Logger::ToFile(const std::string& path, LogLevel level, const LogBounds& bounds) {
  const int file = OpenToAppend(path);
  if (file < 0) return Error{path + " cannot be opened to append: " + std::strerror(errno)};
  return Logger(level, std::make_shared<LogSink>(file, path, bounds));
}

Logger::Logger(Logger&&) noexcept = default;
Logger& Logger::operator=(Logger&&) noexcept = default;
Logger::~Logger() = default;

void Logger::Write(LogLevel level, std::string_view message) const {
  if (Enabled(level)) logger_->log(SpdlogLevel(level), PrintableText(message));
}

void Logger::WriteText(std::string_view text) const { sink_->Append(PrintableText(text)); }

}  // namespace gridloom
