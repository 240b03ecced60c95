#include "interpose/base/log.h"

#include <cstdarg>
#include <cstdio>

#include "interpose/base/settings.h"

namespace gridloom::session {
namespace {

/// Opens the log that the settings ask for; what is wrong with them is said in the log itself.
Logger* OpenLog() {
  const Settings& settings = TheSettings();
  LogLevel level = LogLevel::kWarn;
  std::string complaint;
  if (settings.log_level) {
    const auto known = ParseLogLevel(*settings.log_level);
    level = known.value_or(level);
    if (!known) complaint = "GRIDLOOM_LOG=" + *settings.log_level + " is not one of " + LogLevelNames();
  }
  auto* const logger = new Logger(level);
  if (settings.log_file && !settings.log_file->empty()) {
    auto file = Logger::ToFile(*settings.log_file, level);
    if (file.ok()) *logger = std::move(file).value();
    else complaint = "GRIDLOOM_LOG_FILE: " + file.error().message + "; logging to stderr";
  }
  if (!complaint.empty()) logger->WriteText("gridloom: warn: " + complaint + "\n");
  return logger;
}

/// Never destroyed: libraries call the driver until the process is gone.
const Logger& TheLogger() {
  static const Logger* const logger = OpenLog();
  return *logger;
}

std::string FormatList(const char* format, va_list list) {
  va_list copy;
  va_copy(copy, list);
  const int length = std::vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, list);
  return text;
}

}  // namespace

bool LogEnabled(LogLevel level) { return TheLogger().Enabled(level); }

void Log(LogLevel level, std::string_view message) { TheLogger().Write(level, message); }

void LogText(std::string_view text) { TheLogger().WriteText(text); }

void LogFormat(LogLevel level, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const std::string message = FormatList(format, list);
  va_end(list);
  Log(level, message);
}

std::string Format(const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::string text = FormatList(format, list);
  va_end(list);
  return text;
}

}  // namespace gridloom::session
