// Stands in for a GPU's libcuda.so.1: counts calls, remembers launches, runs nothing. Loaded by the shim as the real
// driver.
#include "tests/interpose/fake_real_driver.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "rewriter/image/image_set.h"
#include "rewriter/machine/slice/kernel_parts.h"

namespace machine = gridloom::machine;

namespace {
unsigned long g_calls;
std::atomic<unsigned long> g_launches;
std::atomic<int> g_event_status, g_capturing, g_memory_status;
std::atomic<std::uint64_t> g_next_address{0x7000000000};

struct Function {
  std::string name;
  bool sliced = false;
  std::size_t params = 0;  ///< that it takes, of 8 bytes at most
};
std::atomic<int> g_sliced_load_status, g_sliced_launch_status, g_sliced_version{90};
std::mutex g_mutex;
std::vector<FakeLaunch> g_recorded;
std::map<std::uint64_t, std::vector<std::uint32_t>> g_words;  ///< memory that was set, by address

/// Modules are PTX texts, of which no more is read than a test needs, or cubins.
struct Module {
  std::string text;
  Function function;
  std::map<std::string, Function> kernels;
};
bool IsSliced(const std::string& text) { return text.find("_gl_first_x") != std::string::npos; }

/// Kernels of a cubin; sliced forms are kernels like others, whose names tell a test.
void ReadKernels(const gridloom::image::Entry& entry, Module& module) {
  const auto cubin = machine::CubinFile::Read(entry.stored);
  if (!cubin.ok()) return;
  for (const auto& symbol : cubin->symbols()) {
    const auto parts = machine::ReadKernelParts(*cubin, symbol.name);
    if (!parts.ok()) continue;
    Function& kernel = module.kernels[symbol.name];
    kernel.name = symbol.name;
    kernel.sliced = symbol.name.ends_with(machine::SlicedName(""));
    for (const machine::Attribute& attribute : parts->attributes)
      kernel.params += attribute.code == machine::AttributeCode::kKparamInfo ? 1 : 0;
  }
}
}  // namespace

FAKE_EXPORT void fake_set_sliced(int load_status, int launch_status, int version) {
  g_sliced_load_status = load_status;
  g_sliced_launch_status = launch_status;
  g_sliced_version = version;
}
FAKE_EXPORT void fake_take_launches(std::vector<FakeLaunch>* launches) {
  const std::lock_guard lock(g_mutex);
  *launches = std::move(g_recorded);
  g_recorded.clear();
}

FAKE_EXPORT int cuModuleLoadDataEx(void** module, const void* image, unsigned, void*, void**) {
  auto* const made = new Module{};
  const auto images = gridloom::image::ReadImagePointer(image);
  const bool code = images.ok() && images->HasKind(gridloom::image::EntryKind::kCubin);
  if (code) ReadKernels(images->containers[0].entries[0], *made);
  else made->text = static_cast<const char*>(image);
  made->function.sliced = IsSliced(made->text);
  bool sliced = made->function.sliced;
  for (const auto& [name, kernel] : made->kernels) sliced |= kernel.sliced;
  *module = made;
  return sliced ? g_sliced_load_status.load() : 0;
}
FAKE_EXPORT int cuModuleLoadData(void** module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
FAKE_EXPORT int cuModuleUnload(void*) { return 0; }
FAKE_EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  auto* const found = static_cast<Module*>(module);
  if (!found->kernels.empty()) {
    const auto kernel = found->kernels.find(name);
    if (kernel == found->kernels.end()) return gridloom::cuda::CUDA_ERROR_NOT_FOUND;
    *function = &kernel->second;
    return 0;
  }
  found->function.params = 0;
  for (std::size_t at = found->text.find(".entry"); (at = found->text.find(".param", at)) < found->text.find('{');
       at += 6)
    ++found->function.params;
  *function = &found->function;
  return 0;
}
FAKE_EXPORT int cuModuleGetFunctionCount(unsigned* count, void* module) {
  *count = static_cast<unsigned>(static_cast<Module*>(module)->kernels.size());
  return 0;
}
FAKE_EXPORT int cuModuleEnumerateFunctions(void** functions, unsigned count, void* module) {
  for (auto& [name, kernel] : static_cast<Module*>(module)->kernels) {
    if (count-- == 0) break;
    *functions++ = &kernel;
  }
  return 0;
}
FAKE_EXPORT int cuFuncGetName(const char** name, void* function) {
  *name = static_cast<const Function*>(function)->name.c_str();
  return 0;
}
FAKE_EXPORT int cuModuleGetGlobal_v2(std::uint64_t* address, std::size_t* bytes, void*, const char* name) {
  *address = 0x123456780;
  *bytes = 4;
  return std::strcmp(name, "hidden_away") == 0 ? 500 : 0;
}
FAKE_EXPORT int cuFuncGetAttribute(int* value, int attribute, void* function) {
  const auto* const of = static_cast<const Function*>(function);
  constexpr int kMaxThreads = 0, kPtxVersion = 5;
  *value = attribute == kMaxThreads ? 1024 : attribute == kPtxVersion ? (of->sliced ? g_sliced_version.load() : 90) : 0;
  return 0;
}
FAKE_EXPORT int cuCtxGetId(void*, std::uint64_t* id) {
  *id = 7;
  return 0;
}
FAKE_EXPORT int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
FAKE_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kMultiprocessors = 16, kMajor = 75;
  *value = attribute == kMultiprocessors ? 4 : attribute == kMajor ? 9 : 0;
  return 0;
}

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
FAKE_EXPORT int cuEventSynchronize(void*) {
  constexpr int kNotReady = 600;
  while (g_event_status == kNotReady) std::this_thread::yield();
  return g_event_status;
}
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
FAKE_EXPORT int cuMemAllocPitch_v2(std::uint64_t* pointer, std::size_t* pitch, std::size_t width, std::size_t,
                                   unsigned) {
  *pointer = g_next_address += 0x1000;
  *pitch = (width + 511) / 512 * 512;
  return g_memory_status;
}
FAKE_EXPORT void fake_end_threads(std::uint32_t address, std::uint32_t place, std::uint32_t threads) {
  const std::lock_guard lock(g_mutex);
  for (auto& [at, words] : g_words) {
    if (static_cast<std::uint32_t>(at) == address) words.at(place) += threads;
  }
}
FAKE_EXPORT int cuMemsetD32Async(std::uint64_t address, unsigned value, std::size_t count, void*) {
  const std::lock_guard lock(g_mutex);
  g_words[address].assign(count, value);
  return 0;
}
FAKE_EXPORT int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void*) {
  const std::lock_guard lock(g_mutex);
  const auto& words = g_words[from];
  std::memcpy(to, words.data(), std::min(bytes, words.size() * sizeof(std::uint32_t)));
  return 0;
}
FAKE_EXPORT int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  *pointer = std::calloc(bytes, 1);
  return 0;
}
FAKE_EXPORT int cuMemFreeHost(void* pointer) {
  std::free(pointer);
  return 0;
}
FAKE_EXPORT int cuStreamCreate(void** stream, unsigned) {
  *stream = &g_words;
  return 0;
}
FAKE_EXPORT int cuStreamDestroy_v2(void*) { return 0; }
FAKE_EXPORT int cuStreamQuery(void*) { return 0; }
FAKE_EXPORT int cuStreamWaitEvent(void*, void*, unsigned) { return 0; }
FAKE_EXPORT int cuCtxSetCurrent(void*) { return 0; }
FAKE_EXPORT int cuMemFree_v2(std::uint64_t) { return g_memory_status; }
FAKE_EXPORT int cuMemCreate(std::uint64_t* handle, std::size_t, const void*, std::uint64_t) {
  *handle = g_next_address += 0x1000;
  return g_memory_status;
}
FAKE_EXPORT int cuMemRelease(std::uint64_t) { return g_memory_status; }
FAKE_EXPORT int cuMemMap(std::uint64_t, std::size_t, std::size_t, std::uint64_t, std::uint64_t) {
  return g_memory_status;
}
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
FAKE_EXPORT int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned, unsigned, unsigned,
                               unsigned, void* stream, void** params, void** extra) {
  ++g_launches;
  const auto* const of = static_cast<const Function*>(function);
  if (of == nullptr) return 0;
  if (const int status = of->sliced ? g_sliced_launch_status.load() : 0; status != 0) return status;
  FakeLaunch launch{.sliced = of->sliced, .grid = {x, y, z}, .stream = stream, .params = {}, .buffer = {}};
  for (std::size_t i = 0; params != nullptr && i < of->params; ++i) {
    std::uint32_t value = 0;
    std::memcpy(&value, params[i], sizeof value);
    launch.params.push_back(value);
  }
  if (extra != nullptr) {
    const auto bytes = *static_cast<const std::size_t*>(extra[3]);
    launch.buffer.resize(bytes / sizeof(std::uint32_t));
    std::memcpy(launch.buffer.data(), extra[1], launch.buffer.size() * sizeof(std::uint32_t));
  }
  const std::lock_guard lock(g_mutex);
  g_recorded.push_back(std::move(launch));
  return 0;
}
FAKE_EXPORT int cuLaunchKernelEx(const gridloom::cuda::CUlaunchConfig* c, void* function, void** params, void** extra) {
  return cuLaunchKernel(function, c->grid_dim_x, c->grid_dim_y, c->grid_dim_z, c->block_dim_x, c->block_dim_y,
                        c->block_dim_z, c->shared_mem_bytes, c->stream, params, extra);
}
FAKE_EXPORT int cuLaunchKernel_ptsz(void*, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    void*, void**, void**) {
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
  if (std::strcmp(symbol, "cuLaunchKernel") == 0)
    *pfn = reinterpret_cast<void*>(twin ? &cuLaunchKernel_ptsz : &cuLaunchKernel);
  if (std::strcmp(symbol, "cuMemAlloc") == 0) *pfn = reinterpret_cast<void*>(&cuMemAlloc_v2);
  if (std::strcmp(symbol, "cuSomethingNewer") == 0) *pfn = reinterpret_cast<void*>(&cuSomethingNewer);
  if (std::strcmp(symbol, "cuGetProcAddress") == 0) *pfn = reinterpret_cast<void*>(&cuGetProcAddress_v2);
  return *pfn != nullptr ? 0 : 500;
}

// The management library of the same driver: the file has both names.
FAKE_EXPORT int nvmlInit_v2() { return 0; }
FAKE_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
/// Six arguments, to see that all of them arrive.
FAKE_EXPORT int nvmlDeviceGetTopologyCommonAncestor(long a, long b, long c, long d, long e, long f) {
  return static_cast<int>(a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f);
}
