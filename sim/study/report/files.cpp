#include "sim/study/report/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rewriter/support/whole_file.h"

namespace gridloom::report {
namespace {

/// 0, or errno.
int WriteAll(int fd, std::string_view text) {
  if (const int problem = WriteWhole(fd, text); problem != 0) return problem;
  return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

}  // namespace

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
