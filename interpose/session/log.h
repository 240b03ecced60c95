// The shim's log: lines on stderr or in GRIDLOOM_LOG_FILE, never on stdout. Each line is one write, so that lines of
// several threads and processes do not mix. Usable at any time, also during exit and after fork.
#pragma once

#include <string>
#include <string_view>

namespace gridloom::session {

enum class LogLevel : int { kOff, kError, kWarn, kInfo, kDebug, kTrace };

bool LogEnabled(LogLevel level);
void Log(LogLevel level, std::string_view message);
/// Writes a whole text (a table, say) where the log goes, without level and prefix.
void LogText(std::string_view text);

void LogFormat(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gridloom::session

#define GL_LOG(level, ...)                                                               \
  do {                                                                                   \
    if (::gridloom::session::LogEnabled(::gridloom::session::LogLevel::level))           \
      ::gridloom::session::LogFormat(::gridloom::session::LogLevel::level, __VA_ARGS__); \
  } while (false)
