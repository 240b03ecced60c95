#include "interpose/launcher/report/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gridloom::report {
namespace {

/// 0, or errno.
int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

}  // namespace

std::string JsonText(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

Status WriteFile(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return Error{"cannot write " + path + ": " + std::strerror(errno)};
  int problem = WriteAll(fd, text);
  fchmod(fd, 0644);
  if (close(fd) != 0 && problem == 0) problem = errno;
  if (problem == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) problem = errno;
  if (problem == 0) return {};
  std::remove(temporary.c_str());
  return Error{"cannot write " + path + ": " + std::strerror(problem)};
}

}  // namespace gridloom::report
