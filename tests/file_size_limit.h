// A full disk, as far as one process can make one: files cannot grow beyond a size while this lives. Who writes on gets
// SIGXFSZ, which ends him, or EFBIG where he keeps that signal away.
#pragma once

#include <sys/resource.h>

namespace gridloom::test {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace gridloom::test
