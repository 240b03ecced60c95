// The shim's log: rewriter/support/log.h with the level and the file that the settings name. Usable at any time, also
// during exit and after fork.
#pragma once

#include <string>
#include <string_view>

#include "rewriter/support/log.h"

namespace gridloom::session {

using gridloom::LogLevel;

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
