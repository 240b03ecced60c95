#include "scheduler/daemon/audit.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace gridloom::broker {
namespace {

std::string TimeText() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char text[40];
  const std::size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + size, sizeof text - size, ".%03ldZ", now.tv_nsec / 1'000'000);
  return text;
}

}  // namespace

Result<Audit> Audit::Open(const std::string& path) {
  Audit audit;
  if (path.empty()) return audit;
  audit.file_ = protocol::Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!audit.file_) return Error{"cannot write the audit log " + path + ": " + std::strerror(errno)};
  return audit;
}

void Audit::Note(std::string_view event, nlohmann::ordered_json details) {
  if (!file_) return;
  nlohmann::ordered_json line{{"time", TimeText()}, {"event", event}};
  line.update(details);
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const ssize_t written = write(file_.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return;
  ++lost_;
  // A part of a line, on a disk that is full now, is taken back: the next line would be appended to it.
  if (written > 0 && ftruncate(file_.get(), lseek(file_.get(), 0, SEEK_CUR) - written) != 0) return;
}

}  // namespace gridloom::broker
