// Stands in for a GPU's libcuda.so.1: counts calls, remembers the last launch. Loaded by the shim as the real driver.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
unsigned long g_calls;
std::atomic<unsigned long> g_launches;
std::atomic<int> g_event_status, g_capturing, g_memory_status;
std::atomic<std::uint64_t> g_next_address{0x7000000000};
}  // namespace

FAKE_EXPORT unsigned long fake_calls() { return g_calls; }
FAKE_EXPORT unsigned long fake_launches() { return g_launches; }

/// What cuEventQuery answers from now on.
FAKE_EXPORT void fake_set_event_status(int status) { g_event_status = status; }
/// What calls about memory answer from now on.
FAKE_EXPORT void fake_set_memory_status(int status) { g_memory_status = status; }
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

/// Device memory: numbers that nobody used before.
FAKE_EXPORT int cuMemAlloc_v2(std::uint64_t* pointer, std::size_t) {
  *pointer = g_next_address += 0x1000;
  return g_memory_status;
}
FAKE_EXPORT int cuMemAllocPitch_v2(std::uint64_t* pointer, std::size_t* pitch, std::size_t width, std::size_t, unsigned) {
  *pointer = g_next_address += 0x1000;
  *pitch = (width + 511) / 512 * 512;
  return g_memory_status;
}
FAKE_EXPORT int cuMemFree_v2(std::uint64_t) { return g_memory_status; }
FAKE_EXPORT int cuMemCreate(std::uint64_t* handle, std::size_t, const void*, std::uint64_t) {
  *handle = g_next_address += 0x1000;
  return g_memory_status;
}
FAKE_EXPORT int cuMemRelease(std::uint64_t) { return g_memory_status; }
FAKE_EXPORT int cuMemMap(std::uint64_t, std::size_t, std::size_t, std::uint64_t, std::uint64_t) { return g_memory_status; }
FAKE_EXPORT int cuMemUnmap(std::uint64_t, std::size_t) { return g_memory_status; }
FAKE_EXPORT int cuArray3DCreate_v2(void** array, const void*) {
  *array = reinterpret_cast<void*>(g_next_address += 0x1000);
  return g_memory_status;
}
FAKE_EXPORT int cuArrayDestroy(void*) { return g_memory_status; }
FAKE_EXPORT int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = std::size_t{70} << 30;
  *total = std::size_t{80} << 30;
  return 0;
}
FAKE_EXPORT int cuCtxGetCurrent(void** context) {
  *context = &g_next_address;
  return 0;
}
FAKE_EXPORT int cuCtxDestroy_v2(void*) { return 0; }

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
  if (std::strcmp(symbol, "cuMemAlloc") == 0) *pfn = reinterpret_cast<void*>(&cuMemAlloc_v2);
  if (std::strcmp(symbol, "cuSomethingNewer") == 0) *pfn = reinterpret_cast<void*>(&cuSomethingNewer);
  if (std::strcmp(symbol, "cuGetProcAddress") == 0) *pfn = reinterpret_cast<void*>(&cuGetProcAddress_v2);
  return *pfn != nullptr ? 0 : 500;
}
