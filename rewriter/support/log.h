// Logs: lines of one pattern, with a level each, on standard error or in files that are bounded in size and number.
// Nothing ever goes to standard output, which is the program's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"

namespace spdlog {
class logger;
}

namespace gridloom {

enum class LogLevel : std::uint8_t { kOff, kError, kWarn, kInfo, kDebug, kTrace };

/// "off, error, warn, info, debug, trace"
std::string LogLevelNames();
/// In upper or lower case; nothing: there is no such level.
std::optional<LogLevel> ParseLogLevel(std::string_view name);

/// What a log in a file may take of the disk (docs/security.md).
struct LogBounds {
  /// A file that would grow beyond is put aside as FILE.1, the one before as FILE.2, …
  std::uint64_t file_bytes = 16 << 20;
  std::uint32_t files = 4;  ///< that one included
};

class LogSink;

/// On standard error a line is `gridloom: LEVEL: MESSAGE`; in a file the time in UTC and the process' number stand
/// before it. A line is one write and no lock is held meanwhile: lines of several threads and processes do not mix, and
/// it can be used in a signal handler's thread, during exit and in a forked child. Processes may share a file. Control
/// characters and the like are shown as escapes.
class Logger {
 public:
  /// To standard error.
  explicit Logger(LogLevel level);
  /// To a file, which is made if it is missing. Errors: it cannot be opened to append. A pipe nobody reads is an error,
  /// too.
  static Result<Logger> ToFile(const std::string& path, LogLevel level, const LogBounds& bounds = {});
  Logger(Logger&&) noexcept;
  Logger& operator=(Logger&&) noexcept;
  ~Logger();

  bool Enabled(LogLevel level) const { return level <= level_; }
  /// Does nothing where the level is not enabled. What cannot be written (a full disk) is lost.
  void Write(LogLevel level, std::string_view message) const;
  /// A text of several lines (a table, say), as it is: without a level, whatever the logger's.
  void WriteText(std::string_view text) const;

 private:
  Logger(LogLevel level, std::shared_ptr<LogSink> sink);

  LogLevel level_;
  std::shared_ptr<LogSink> sink_;
  std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace gridloom
