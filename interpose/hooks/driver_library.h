// The driver's names in a library of their own.
//
// A preloaded library comes first in every look-up of a name. Programs that keep the driver's functions in variables
// called like them (slang-rhi has `cuInit` and its like in a shared library) would have the shim's functions in the
// place of their variables, and write over code. A real driver is not in their way, as they open it with dlopen, which
// shows its names to nobody else. So a preloaded shim hides its names of the driver and of NVML once it is loaded, and
// opens libgridloom-driver.so in the same way: a library of that SONAME with nothing but jumps to the shim. Programs
// that are linked with the driver keep the shim's own names, as they would have a driver's.
#pragma once

#include <cstddef>

namespace gridloom::hooks {

struct DriverFunction {
  const char* name;
  void (*function)();
};
/// All functions of the driver and of NVML, sorted by name.
extern const DriverFunction kDriverFunctions[];
extern const std::size_t kDriverFunctionCount;

/// When the shim is loaded: as above, if it is preloaded and no library that is there from the start is linked with the
/// driver or NVML.
void HideDriverNames();

/// For dlsym: the function of that name, if the names are hidden and `handle` is that of the shim or of the library
/// that stands for it; so a function has one address, whoever asks. Null: it is none of these.
void* HiddenDriverFunction(void* handle, const char* name);

}  // namespace gridloom::hooks
