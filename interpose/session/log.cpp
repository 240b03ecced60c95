#include "interpose/session/log.h"

#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "interpose/session/settings.h"
#include "rewriter/support/printable.h"

namespace gridloom::session {
namespace {

constexpr const char* kNames[] = {"off", "error", "warn", "info", "debug", "trace"};

struct Sink {
  LogLevel level = LogLevel::kWarn;
  int fd = STDERR_FILENO;
};

Sink OpenSink() {
  const Settings& settings = TheSettings();
  Sink sink;
  std::string complaint;
  if (settings.log_level) {
    int found = -1;
    for (int i = 0; i < 6; ++i) {
      if (strcasecmp(settings.log_level->c_str(), kNames[i]) == 0) found = i;
    }
    if (found >= 0) sink.level = static_cast<LogLevel>(found);
    else complaint = "GRIDLOOM_LOG=" + *settings.log_level + " is not one of off, error, warn, info, debug, trace";
  }
  if (settings.log_file && !settings.log_file->empty()) {
    const int fd = open(settings.log_file->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) sink.fd = fd;
    else complaint = "GRIDLOOM_LOG_FILE=" + *settings.log_file + " cannot be opened; logging to stderr";
  }
  if (!complaint.empty()) {
    complaint = "gridloom: warn: " + complaint + "\n";
    (void)!write(sink.fd, complaint.data(), complaint.size());
  }
  return sink;
}

const Sink& TheSink() {
  static const Sink sink = OpenSink();
  return sink;
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

bool LogEnabled(LogLevel level) { return level <= TheSink().level; }

void LogText(std::string_view whole) {
  const std::string shown = PrintableText(whole);
  std::string_view text = shown;
  while (!text.empty()) {
    const ssize_t written = write(TheSink().fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Log(LogLevel level, std::string_view message) {
  if (!LogEnabled(level)) return;
  std::string line = std::string("gridloom: ") + kNames[static_cast<int>(level)] + ": ";
  line.append(message);
  line += '\n';
  LogText(line);
}

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
