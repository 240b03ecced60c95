// The driver of a real GPU behind the shim: found by path, loaded beside us, called through g_real
// (interpose/api/entry.h).
#pragma once

#include <string>

namespace gridloom::api {

/// True when the machine has a GPU whose kernel driver is loaded.
bool RealGpuVisible();

/// Opens another library of the real driver, "libnvidia-ml.so.1"; null when there is none beside it or where drivers
/// are.
void* OpenRealLibrary(const std::string& name);

/// Loads the real libcuda.so.1 and fills g_real; the reason when it cannot be found or is ourselves.
bool LoadRealDriver(std::string* why);

}  // namespace gridloom::api
