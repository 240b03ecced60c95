// Programs that look for the driver's device files before they try CUDA (JAX: /dev/nvidia0, /dev/nvidiactl): with a
// virtual GPU, who asks whether these exist hears yes. Whoever opens one finds that it does not; nothing but the driver
// has business there.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "interpose/real/driver.h"

namespace {

/// The file to ask about in the place of `path`: a character device, too.
const char* Answered(const char* path) {
  constexpr const char* kPrefix = "/dev/nvidia";
  if (path == nullptr || std::strncmp(path, kPrefix, std::strlen(kPrefix)) != 0) [[likely]]
    return path;
  const char* const rest = path + std::strlen(kPrefix);
  const bool ours = std::strcmp(rest, "0") == 0 || std::strcmp(rest, "ctl") == 0;
  return ours && gridloom::api::CurrentMode() == gridloom::api::Mode::kVirtual ? "/dev/null" : path;
}

/// The C library's function of this name; old ones lack some, and nobody calls those there.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define GL_VISIBLE __attribute__((visibility("default")))

extern "C" {

GL_VISIBLE int stat(const char* path, struct stat* status) noexcept {
  static auto* const next = Next<int(const char*, struct stat*)>("stat");
  return next(Answered(path), status);
}

GL_VISIBLE int stat64(const char* path, struct stat64* status) noexcept {
  static auto* const next = Next<int(const char*, struct stat64*)>("stat64");
  return next(Answered(path), status);
}

GL_VISIBLE int fstatat(int folder, const char* path, struct stat* status, int flags) noexcept {
  static auto* const next = Next<int(int, const char*, struct stat*, int)>("fstatat");
  return next(folder, Answered(path), status, flags);
}

GL_VISIBLE int fstatat64(int folder, const char* path, struct stat64* status, int flags) noexcept {
  static auto* const next = Next<int(int, const char*, struct stat64*, int)>("fstatat64");
  return next(folder, Answered(path), status, flags);
}

GL_VISIBLE int statx(int folder, const char* path, int flags, unsigned mask, struct statx* status) noexcept {
  static auto* const next = Next<int(int, const char*, int, unsigned, struct statx*)>("statx");
  return next(folder, Answered(path), flags, mask, status);
}

// What stat was before glibc 2.33; programs built with an older one call it.
GL_VISIBLE int __xstat(int version, const char* path, struct stat* status) noexcept {
  static auto* const next = Next<int(int, const char*, struct stat*)>("__xstat");
  return next(version, Answered(path), status);
}

GL_VISIBLE int __xstat64(int version, const char* path, struct stat64* status) noexcept {
  static auto* const next = Next<int(int, const char*, struct stat64*)>("__xstat64");
  return next(version, Answered(path), status);
}

GL_VISIBLE int access(const char* path, int mode) noexcept {
  static auto* const next = Next<int(const char*, int)>("access");
  return next(Answered(path), mode);
}

GL_VISIBLE int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  static auto* const next = Next<int(int, const char*, int, int)>("faccessat");
  return next(folder, Answered(path), mode, flags);
}

}  // extern "C"
