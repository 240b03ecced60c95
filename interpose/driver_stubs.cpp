// libgridloom-driver.so: the driver's names, and nothing behind them but jumps to the shim (hooks/driver_library.h says
// what for). The stubs themselves are generated.
#include <dlfcn.h>

#include <cstddef>
#include <string>

#include "interpose/hooks/driver_library.h"

extern "C" {
extern void* gl_driver_targets[];
extern const unsigned gl_driver_target_count;
}

namespace {

using gridloom::hooks::DriverFunction;
using Functions = const DriverFunction* (*)();

/// The functions of the shim that is preloaded; else of the shim beside this library, which is opened then.
Functions FindShim() {
  constexpr const char* kName = "gridloomDriverFunctions";
  if (void* const preloaded = dlsym(RTLD_DEFAULT, kName)) return reinterpret_cast<Functions>(preloaded);
  Dl_info self{};
  if (dladdr(static_cast<const void*>(gl_driver_targets), &self) == 0) return nullptr;
  const std::string file = self.dli_fname;
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  for (const char* const shim : {"libgridloom.so", "../libgridloom.so"}) {
    void* const handle = dlopen((folder + shim).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return reinterpret_cast<Functions>(dlsym(handle, kName));
  }
  return nullptr;
}

__attribute__((constructor)) void Connect() {
  const Functions functions = FindShim();
  if (functions == nullptr) return;
  const DriverFunction* const all = functions();
  for (unsigned i = 0; i < gl_driver_target_count; ++i) gl_driver_targets[i] = reinterpret_cast<void*>(all[i].function);
}

}  // namespace
