// Preloaded into a program by files_test.py: says on standard error which bytes of which file each pread reads, before
// it does.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>

extern "C" __attribute__((visibility("default"))) ssize_t pread(int fd, void* data, std::size_t bytes, off_t begin) {
  using Pread = ssize_t (*)(int, void*, std::size_t, off_t);
  static const auto next = reinterpret_cast<Pread>(dlsym(RTLD_NEXT, "pread"));
  char path[PATH_MAX] = {};
  if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1) > 0) {
    std::fprintf(stderr, "read %s %lld %zu\n", path, static_cast<long long>(begin), bytes);
  }
  return next(fd, data, bytes, begin);
}
