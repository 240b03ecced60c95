// Who answers the program's calls: the virtual GPU, or the driver of a real GPU, which is found by path, loaded beside
// us and called through g_real (real/call.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"

namespace gridloom::api {

enum class Mode : std::uint8_t { kUndecided, kVirtual, kReal };
extern std::atomic<Mode> g_mode;

/// Reads the settings once and decides who answers: our virtual GPU or a real driver.
Mode DecideMode();
inline Mode CurrentMode() {
  const Mode mode = g_mode.load(std::memory_order_acquire);  // pairs with the release in DecideMode
  return mode != Mode::kUndecided ? mode : DecideMode();
}

/// Calls of the virtual GPU are looked at when they have been answered: GRIDLOOM_LOG=trace has a line for each, and
/// memcheck counts those that fail where GRIDLOOM_REPORT_API_ERRORS asks for it. Decided with the mode.
extern std::atomic<bool> g_looks_at_calls;

cuda::CUresult MissingInRealDriver(Fn fn);
void CountRealLaunch(Fn fn);
/// cuGetProcAddress on a real GPU: the real answer, except that launching functions lead through us.
cuda::CUresult RealGetProcAddress(const char* symbol, void** pfn, int version, std::uint64_t flags,
                                  cuda::CUdriverProcAddressQueryResult* status);

/// True when the machine has a GPU whose kernel driver is loaded.
bool RealGpuVisible();

/// Opens another library of the real driver, "libnvidia-ml.so.1"; null when there is none beside it or where drivers
/// are.
void* OpenRealLibrary(const std::string& name);

/// Loads the real libcuda.so.1 and fills g_real; the reason when it cannot be found or is ourselves.
bool LoadRealDriver(std::string* why);

}  // namespace gridloom::api
