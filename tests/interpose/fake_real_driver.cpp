// Stands in for a GPU's libcuda.so.1: counts calls, remembers the last launch. Loaded by the shim as the real driver.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
unsigned long g_calls;
std::atomic<unsigned long> g_launches;
std::atomic<int> g_event_status, g_capturing;
}  // namespace

FAKE_EXPORT unsigned long fake_calls() { return g_calls; }
FAKE_EXPORT unsigned long fake_launches() { return g_launches; }

/// What cuEventQuery answers from now on.
FAKE_EXPORT void fake_set_event_status(int status) { g_event_status = status; }
/// Whether every stream is being captured.
FAKE_EXPORT void fake_set_capturing(int capturing) { g_capturing = capturing; }

FAKE_EXPORT int cuEventCreate(void** event, unsigned) {
  *event = &g_event_status;
  return 0;
}
FAKE_EXPORT int cuEventRecord(void*, void*) { return 0; }
FAKE_EXPORT int cuEventQuery(void*) { return g_event_status; }
FAKE_EXPORT int cuEventDestroy_v2(void*) { return 0; }
FAKE_EXPORT int cuStreamIsCapturing(void*, int* status) {
  *status = g_capturing;
  return 0;
}

FAKE_EXPORT int cuInit(unsigned) {
  ++g_calls;
  return 0;
}
FAKE_EXPORT int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
FAKE_EXPORT int cuDeviceGetCount(int* count) {
  *count = 3;
  return 0;
}
FAKE_EXPORT int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) {
  ++g_launches;
  return 0;
}
FAKE_EXPORT int cuLaunchKernel_ptsz(void*, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                                    void**) {
  ++g_launches;
  return static_cast<int>(grid);  // shows that arguments and answers pass through untouched
}
FAKE_EXPORT int cuSomethingNewer(int) {
  ++g_calls;
  return 77;
}
FAKE_EXPORT int cuGetProcAddress_v2(const char* symbol, void** pfn, int, std::uint64_t flags, int* status) {
  *pfn = nullptr;
  if (status != nullptr) *status = 0;
  const bool twin = (flags & 2) != 0;
  if (std::strcmp(symbol, "cuInit") == 0) *pfn = reinterpret_cast<void*>(&cuInit);
  if (std::strcmp(symbol, "cuLaunchKernel") == 0) *pfn = reinterpret_cast<void*>(twin ? &cuLaunchKernel_ptsz : &cuLaunchKernel);
  if (std::strcmp(symbol, "cuSomethingNewer") == 0) *pfn = reinterpret_cast<void*>(&cuSomethingNewer);
  if (std::strcmp(symbol, "cuGetProcAddress") == 0) *pfn = reinterpret_cast<void*>(&cuGetProcAddress_v2);
  return *pfn != nullptr ? 0 : 500;
}
