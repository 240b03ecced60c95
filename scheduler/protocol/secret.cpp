#include "scheduler/protocol/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "scheduler/protocol/socket.h"

namespace gridloom::protocol {
namespace {

constexpr std::size_t kLeast = 8, kMost = 200;

}  // namespace

Result<std::string> ReadSecret(const std::string& path, bool owner_only) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0)
    return Error{"cannot read the token file " + path + ": " + std::strerror(errno)};
  if (!S_ISREG(info.st_mode)) return Error{"the token file " + path + " is not a regular file"};
  if (owner_only && (info.st_mode & 077) != 0) {
    return Error{"others may read the token file " + path + "; `chmod 600 " + path + "` mends it"};
  }
  std::string text;
  char part[kMost + 1];
  while (text.size() <= kMost && text.find('\n') == std::string::npos) {
    const ssize_t size = read(file.get(), part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Error{"cannot read the token file " + path + ": " + std::strerror(errno)};
    if (size == 0) break;
    text.append(part, static_cast<std::size_t>(size));
  }
  const std::string line = text.substr(0, text.find('\n'));
  if (line.size() < kLeast || line.size() > kMost || line.find('\0') != std::string::npos) {
    return Error{"the first line of the token file " + path + " is no secret of " + std::to_string(kLeast) + " to " +
                 std::to_string(kMost) + " bytes, none of them zero"};
  }
  return line;
}

}  // namespace gridloom::protocol
