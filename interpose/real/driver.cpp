#include "interpose/real/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "interpose/base/at_end.h"
#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/objects/process.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"
#include "interpose/real/call.h"
#include "interpose/real/code.h"
#include "interpose/real/launch.h"
#include "interpose/real/memory.h"

namespace gridloom::api {

using namespace cuda;
using session::LogLevel;

std::atomic<Mode> g_mode{Mode::kUndecided};
std::atomic<bool> g_looks_at_calls{false};
void* g_real[kFunctionCount][2];

namespace {

std::array<std::atomic<std::uint64_t>, kFunctionCount> g_launches;

constexpr const char* kDriver = "libcuda.so.1";

using GetProcAddressV2 = CUresult (*)(const char*, void**, int, std::uint64_t, CUdriverProcAddressQueryResult*);
using GetProcAddressV1 = CUresult (*)(const char*, void**, int, std::uint64_t);

/// Directories of LD_LIBRARY_PATH, then where distributions and NVIDIA's installer put the driver.
std::vector<std::string> Candidates(const std::string& name) {
  std::vector<std::string> files;
  if (const auto& given = session::TheSettings().real_driver; given && !given->empty()) {
    if (name == kDriver) return {*given};
    files.push_back(given->substr(0, given->rfind('/') + 1) + name);
  }
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    for (const char* at = path; *at != '\0';) {
      const std::size_t length = std::strcspn(at, ":");
      if (length != 0) files.push_back(std::string(at, length) + "/" + name);
      at += length + (at[length] == ':');
    }
  }
  for (const char* directory :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib",
        "/usr/lib/wsl/lib", "/run/opengl-driver/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat"}) {
    files.push_back(std::string(directory) + "/" + name);
  }
  return files;
}

bool SameFile(const std::string& file, const char* other) {
  struct stat a {
  }, b{};
  return stat(file.c_str(), &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

bool RealGpuVisible() {
  // Not by the C library's functions: the shim answers those itself for some of these files (hooks/device_files.cpp).
  return syscall(SYS_access, "/dev/nvidiactl", F_OK) == 0 || syscall(SYS_access, "/dev/dxg", F_OK) == 0;
}

void* OpenRealLibrary(const std::string& name) {
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&OpenRealLibrary), &self);
  for (const std::string& file : Candidates(name)) {
    if (self.dli_fname != nullptr && SameFile(file, self.dli_fname)) continue;
    if (void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

bool LoadRealDriver(std::string* why) {
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&LoadRealDriver), &self);
  *why = "no libcuda.so.1 of a GPU driver was found";
  for (const std::string& file : Candidates(kDriver)) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) continue;
    if (self.dli_fname != nullptr && SameFile(file, self.dli_fname)) continue;
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      *why = dlerror();
      continue;
    }
    if (dlsym(handle, "cuGetProcAddress") == RowOf(Fn::cuGetProcAddress).address) continue;  // a copy of ourselves
    for (std::size_t i = 0; i < kFunctionCount; ++i) {
      const Row& row = Table()[i];
      g_real[i][0] = dlsym(handle, row.symbol);
      if (*row.twin_suffix != '\0') g_real[i][1] = dlsym(handle, (std::string(row.symbol) + row.twin_suffix).c_str());
    }
    GL_LOG(kInfo, "calls go to the real driver %s", file.c_str());
    return true;
  }
  return false;
}

namespace {

/// The first call of all, which also reads the settings, is made under it. Held over each fork: a child begins with
/// nothing half made.
constinit std::mutex g_first_call;
// A real driver may fork as it is loaded.
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_decides = false;

struct Deciding {
  Deciding() { t_decides = true; }
  ~Deciding() { t_decides = false; }
  Deciding(const Deciding&) = delete;
  Deciding& operator=(const Deciding&) = delete;
};

/// From before the first call on, and not under the lock: the C library has one of its own over handlers.
const int g_fork_handlers = pthread_atfork(
    [] {
      if (!t_decides) g_first_call.lock();
    },
    [] {
      if (!t_decides) g_first_call.unlock();
    },
    [] {
      if (!t_decides) g_first_call.unlock();
    });

}  // namespace

Mode DecideMode() {
  const std::lock_guard lock(g_first_call);
  const Deciding deciding;
  if (const Mode mode = g_mode.load(std::memory_order_acquire); mode != Mode::kUndecided) return mode;
  const auto& device = session::TheSettings().device;
  const bool asked = device && *device == "real";
  Mode mode = Mode::kVirtual;
  if (asked || ((!device || device->empty()) && RealGpuVisible())) {
    std::string why;
    if (LoadRealDriver(&why)) {
      mode = Mode::kReal;
      RealGate::Start(session::Process::Get());
      // `run` refuses it with --device real; here nobody has asked for this GPU.
      if (session::TheSettings().policy == "pagoda") {
        session::Log(LogLevel::kWarn,
                     "the policy pagoda has no effect: the program runs on a real GPU, where launches stay as they "
                     "are; choose a virtual device "
                     "(gridloom devices), for example with --device h200");
      }
      // Launch counts belong to the summary of a run.
      if (session::IsOn(session::TheSettings().summary)) {
        session::AtEnd([] {
          std::uint64_t total = 0;
          for (const auto& count : g_launches) total += count.load(std::memory_order_relaxed);
          session::LogText(
              session::Format("\ngridloom: %llu launches on the real GPU\n", static_cast<unsigned long long>(total)));
        });
      }
    } else if (asked) {
      session::LogFormat(LogLevel::kError, "GRIDLOOM_DEVICE=real: %s; the program sees no GPU", why.c_str());
    }
  }
  g_looks_at_calls.store(
      session::LogEnabled(LogLevel::kTrace) || session::Process::Get().observers().memcheck().reports_calls(),
      std::memory_order_relaxed);
  g_mode.store(mode, std::memory_order_release);
  return mode;
}

CUresult MissingInRealDriver(Fn fn) {
  session::LogFormat(LogLevel::kWarn, "the real driver has no %s", RowOf(fn).symbol);
  return CUDA_ERROR_NOT_SUPPORTED;
}

void CountRealLaunch(Fn fn) {
  g_launches[static_cast<std::size_t>(fn)].fetch_add(1, std::memory_order_relaxed);
  GL_LOG(kTrace, "%s", RowOf(fn).symbol);
}

CUresult RealGetProcAddress(const char* symbol, void** pfn, int version, std::uint64_t flags,
                            CUdriverProcAddressQueryResult* status) {
  CUresult result = CUDA_ERROR_NOT_FOUND;
  if (void* const real = g_real[static_cast<std::size_t>(Fn::cuGetProcAddress_v2)][0]) {
    result = reinterpret_cast<GetProcAddressV2>(real)(symbol, pfn, version, flags, status);
  } else if (void* const old = g_real[static_cast<std::size_t>(Fn::cuGetProcAddress)][0]) {
    result = reinterpret_cast<GetProcAddressV1>(old)(symbol, pfn, version, flags);
  } else {
    return MissingInRealDriver(Fn::cuGetProcAddress_v2);
  }
  if (result != CUDA_SUCCESS || symbol == nullptr || pfn == nullptr || *pfn == nullptr || version > kDriverVersion)
    return result;
  // What dlsym finds is ours, and a program may compare the two; what the real driver has in newer forms is called
  // directly.
  const Lookup ours = Find(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (ours.row == nullptr) return result;
  const bool lookup = std::strcmp(ours.row->name, "cuGetProcAddress") == 0;
  const std::size_t index = static_cast<std::size_t>(ours.row - Table().data());
  const bool twin = ours.address == ours.row->twin_address;
  const RealGate* const gate = RealGate::Get();
  const bool memory =
      gate != nullptr && gate->memory() != nullptr && MemoryRoleOf(static_cast<Fn>(index)) != MemoryRole::kNone;
  const bool code = gate != nullptr && gate->code() != nullptr && CodeRoleOf(static_cast<Fn>(index)) != CodeRole::kNone;
  const bool same = *pfn == g_real[index][twin];
  if ((same || ours.row->launches || lookup || memory || code) && g_real[index][twin] != nullptr) *pfn = ours.address;
  return result;
}

}  // namespace gridloom::api
