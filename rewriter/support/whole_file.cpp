#include "rewriter/support/whole_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace gridloom {
namespace {

/// The calling thread's writes raise no SIGXFSZ while this lives.
class SizeSignalHeld {
 public:
  SizeSignalHeld() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~SizeSignalHeld() {
    constexpr timespec kAtOnce{};
    const int error = errno;
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &kAtOnce);  // else it would come when it is let through
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  SizeSignalHeld(const SizeSignalHeld&) = delete;
  SizeSignalHeld& operator=(const SizeSignalHeld&) = delete;

 private:
  sigset_t signal_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace

Status ReadFileInParts(const std::string& path, const std::function<void(std::string_view)>& take) {
  const auto failed = [&] { return Error{"cannot read " + path + ": " + std::strerror(errno)}; };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return failed();
  struct Closer {
    int file;
    ~Closer() { close(file); }
  } const closer{file};
  // Others may have put a FIFO or a device in a file's place, which would never end. Reading says of a folder that it
  // is one.
  struct stat status {};
  if (fstat(file, &status) != 0) return failed();
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return Error{"cannot read " + path + ": not a regular file"};
  constexpr std::size_t kPart = 256 << 10;
  const auto part = std::make_unique<char[]>(kPart);
  for (;;) {
    const ssize_t got = read(file, part.get(), kPart);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    if (got == 0) return {};
    take({part.get(), static_cast<std::size_t>(got)});
  }
}

Result<std::string> ReadWholeFile(const std::string& path) {
  std::string text;
  GL_TRY_STATUS(ReadFileInParts(path, [&](std::string_view part) { text += part; }));
  return text;
}

int WriteWhole(int file, std::string_view bytes) {
  const SizeSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t put = write(file, bytes.data(), bytes.size());
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    else if (put == 0) return ENOSPC;
    else if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace gridloom
