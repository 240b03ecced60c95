#include "interpose/launcher/doctor/checks.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "interpose/launcher/installation.h"
#include "interpose/settings/host_libraries.h"
#include "rewriter/support/terminal.h"
#include "sim/device/device_files.h"
#include "sim/exec/device_memory.h"
#include "sim/exec/engine.h"
#include "sim/exec/runtime/address_space.h"
#include "sim/exec/runtime/code_cache.h"
#include "sim/exec/runtime/compiler_loader.h"
#include "sim/exec/runtime/processor_choices.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLittleMemory = 2ull << 30;
constexpr std::uint64_t kLittleDisk = 256ull << 20;
// Addresses, not memory, that the shim reserves for device memory.
const std::uint64_t kReservedRange = exec::DeviceMemory::Options{}.range_bytes;

Finding Good(std::string text) { return {Verdict::kGood, std::move(text), ""}; }
Finding Note(std::string text, std::string mend = "") { return {Verdict::kNote, std::move(text), std::move(mend)}; }
Finding Problem(std::string text, std::string mend) { return {Verdict::kProblem, std::move(text), std::move(mend)}; }

/// First number of a file, such as those under /proc/sys.
bool ReadNumber(const char* file, std::uint64_t& value) {
  std::ifstream stream(file);
  return static_cast<bool>(stream >> value);
}

Finding LookAtProcessor() {
#if defined(__x86_64__)
  cpu_set_t cpus;
  const int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  const std::string cores = std::to_string(count) + (count == 1 ? " core" : " cores");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return Good("x86-64 with AVX-512, " + cores);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Good("x86-64 with AVX2, " + cores);
  return Note("x86-64 without AVX2, " + cores + ": kernels run, but several times slower than with it");
#else
  return Problem("this is not an x86-64 processor", "run Gridloom on an x86-64 machine");
#endif
}

Finding LookAtMemory() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t total = 0, available = 0;
  for (std::string name, unit; file >> name;) {
    std::uint64_t kib = 0;
    file >> kib;
    std::getline(file, unit);
    if (name == "MemTotal:") total = kib * 1024;
    if (name == "MemAvailable:") available = kib * 1024;
  }
  std::uint64_t limit = 0;
  std::string container;
  if (ReadNumber("/sys/fs/cgroup/memory.max", limit) && limit < total)
    container = ", of which this container may use " + SizeText(limit);
  const std::string text = SizeText(available) + " of " + SizeText(total) + " free" + container;
  if (available < kLittleMemory)
    return Note(text + ": programs that allocate more device memory than that fail",
                "close other programs, or use a smaller `--memory`");
  return Good(text);
}

/// What keeps a process from reserving addresses, and the command that lifts it.
std::string AddressSpaceCure() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return "ulimit -v unlimited";
  std::uint64_t overcommit = 0;
  if (ReadNumber("/proc/sys/vm/overcommit_memory", overcommit) && overcommit == 2)
    return "sudo sysctl vm.overcommit_memory=0";
  return "lift the limit on virtual memory of the container or sandbox that this process is in";
}

/// Reserves addresses the way the shim does.
Finding LookAtAddressSpace() {
  const auto space = exec::AddressSpace::Reserve(kReservedRange);
  if (!space.ok()) return Problem(space.error().message, AddressSpaceCure());
  if (space->bytes() >= kReservedRange) return Good(SizeText(space->bytes()) + " can be reserved for device memory");
  return Note("only " + SizeText(space->bytes()) +
                  " can be reserved for device memory, virtual memory being limited: programs cannot have more",
              AddressSpaceCure());
}

/// Loads a library to see whether everything it needs is there.
Finding LookAtLibrary(std::string_view name, const char* purpose) {
  const auto file = FindLibrary(name);
  if (!file) {
    return Problem("cannot find " + std::string(name) + " beside " + ToolDirectory().string() + " (" + purpose + ")",
                   "scripts/build, or install Gridloom again");
  }
  void* library = dlopen(file->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Problem(dlerror(), "scripts/setup, or install Gridloom again");
  return Good(file->string());  // left loaded: unloading someone's static objects gains nothing here
}

Finding LookAtShim() { return LookAtLibrary(kShim, "the driver that programs are given"); }
Finding LookAtCompiler() {
  const Finding there = LookAtLibrary(kCompiler, "it compiles kernels");
  const auto file = FindLibrary(kCompiler);
  if (!file) return there;
  if (access((file->parent_path() / kCompileService).c_str(), X_OK) != 0)
    return Problem("no " + std::string(kCompileService) + " beside " + file->string(),
                   "scripts/build, or install Gridloom again");
  const auto opened = exec::OpenCompiler(file->string());
  return opened.ok() ? there : Problem(opened.error().message, "scripts/build, or install Gridloom again");
}

Finding LookAtDevices() {
  const auto directory = sim::DeviceDirectory();
  if (!directory.ok()) return Problem(directory.error().message, "scripts/build, or install Gridloom again");
  const auto ids = sim::DeviceIds(*directory);
  for (const std::string& id : ids) {
    const auto device = sim::LoadDevice(id, *directory);
    if (!device.ok()) return Problem(device.error().message, "correct that file, or install Gridloom again");
  }
  return Good(std::to_string(ids.size()) + " devices in " + directory->string());
}

Finding LookAtCache() {
  const fs::path cache = CacheDirectory();
  if (cache.empty())
    return Note("compiled kernels are not kept: every start compiles again", "unset GRIDLOOM_CACHE_DIR, and set HOME");
  fs::path existing = cache;
  std::error_code error;
  while (!existing.empty() && existing != existing.root_path() && !fs::exists(existing, error))
    existing = existing.parent_path();
  if (existing.empty()) existing = ".";
  if (access(existing.c_str(), W_OK | X_OK) != 0 || !fs::is_directory(existing, error)) {
    return Problem("compiled kernels cannot be kept: " + existing.string() + " is not a folder this user can write to",
                   "export GRIDLOOM_CACHE_DIR=/tmp/gridloom-cache");
  }
  struct statvfs disk {};
  if (statvfs(existing.c_str(), &disk) == 0 && std::uint64_t{disk.f_bavail} * disk.f_frsize < kLittleDisk) {
    return Problem("only " + SizeText(std::uint64_t{disk.f_bavail} * disk.f_frsize) +
                       " of disk left for compiled kernels in " + cache.string(),
                   "free some space, or export GRIDLOOM_CACHE_DIR=FOLDER on another disk");
  }
  return Good(cache.string());
}

/// Where a real driver would come from; empty when there is none.
std::string FindRealDriver() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return "";
  link_map* map = nullptr;
  std::string path = "libcuda.so.1";
  if (dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path = map->l_name;
  dlclose(driver);
  // Our own shim answers to that name when its folder is in LD_LIBRARY_PATH.
  const auto shim = FindLibrary(kShim);
  std::error_code error;
  return shim && fs::equivalent(path, *shim, error) ? "" : path;
}

Finding LookAtGpu() {
  int gpus = 0;
  while (fs::exists("/dev/nvidia" + std::to_string(gpus))) ++gpus;
  const std::string driver = FindRealDriver();
  if (gpus == 0 && driver.empty()) return Good("no GPU here, and none is needed: programs run on a virtual one");
  if (gpus == 0) return Good("no GPU here, though a driver library is (" + driver + "): programs run on a virtual GPU");
  const std::string count = std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
  if (driver.empty()) {
    return Problem(count + " in /dev, but no libcuda.so.1: `--device real` cannot work",
                   "install NVIDIA's driver libraries (on Debian: sudo apt-get install libcuda1)");
  }
  if (access("/dev/nvidia0", R_OK | W_OK) != 0) {
    return Problem(count + " in /dev, but this user may not use them: `--device real` cannot work",
                   "sudo chmod a+rw /dev/nvidia*");
  }
  return Good(count + ", driver " + driver + ": used with `--device real`");
}

Finding LookAtPreload() {
  const char* preload = std::getenv("LD_PRELOAD");
  if (preload == nullptr || *preload == '\0') return Good("LD_PRELOAD is free");
  const bool ours = std::string_view(preload).find(kShim) != std::string_view::npos;
  return Note("LD_PRELOAD is set already: " + std::string(preload),
              ours ? "unset LD_PRELOAD; `gridloom run` sets it" : "");
}

/// "13.0" of "Cuda compilation tools, release 13.0, V13.0.88"; empty when nvcc does not run.
std::string NvccVersion(const std::string& nvcc) {
  FILE* pipe = popen((nvcc + " --version 2> /dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  for (char buffer[256]; std::fgets(buffer, sizeof buffer, pipe) != nullptr;) text += buffer;
  pclose(pipe);
  const std::size_t at = text.find("release ");
  return at == std::string::npos ? "" : text.substr(at + 8, text.find(',', at) - at - 8);
}

Finding LookAtNvcc() {
  for (const std::string nvcc : {"nvcc", "/usr/local/cuda/bin/nvcc"}) {
    const std::string version = NvccVersion(nvcc);
    if (version.empty()) continue;
    if (nvcc == "nvcc") return Good("release " + version);
    return Note("release " + version + " is in /usr/local/cuda/bin, which is not on the PATH",
                "export PATH=/usr/local/cuda/bin:$PATH");
  }
  return Note(
      "nvcc is not installed: programs that are built already run all the same; CUDA sources cannot be built here");
}

/// How code is made for the processor; measured now where nobody has yet.
Finding LookAtCode() {
  exec::CodeCache cache(CacheDirectory().string(), exec::Engine::Options{}.cache_bytes, nullptr);
  const exec::KnownProcessor known = exec::KnowProcessor(cache);
  exec::ProcessorChoices choices = exec::ChoicesOf(known.times);
  const char* const wanted = std::getenv("GRIDLOOM_CODE");
  if (const Status applied = exec::ApplyChoices(wanted != nullptr ? wanted : "", choices); !applied.ok())
    return Problem(applied.error().message, "unset GRIDLOOM_CODE");
  char text[200];
  std::snprintf(text, sizeof text,
                "%s rows ahead (%.2f times as fast with it), up to %u lanes go on one by one (few %.2f times as fast "
                "so, all %.2f)%s",
                choices.fetch_ahead ? "fetches" : "does not fetch", known.times.ahead_gain, unsigned{choices.few_lanes},
                known.times.few_gain, known.times.all_gain,
                wanted != nullptr    ? ", partly as GRIDLOOM_CODE says"
                : known.measured_now ? ", measured now"
                                     : "");
  return Good(text);
}

/// The first of a setting's library and the usual ones that can be opened; empty: none.
std::string FirstLibrary(std::span<const char* const> names) {
  for (const char* const name : names)
    if (dlopen(name, RTLD_LAZY | RTLD_LOCAL) != nullptr) return name;
  return "";
}

/// What makes products of matrices and Fourier transforms in place of cuBLAS's and cuFFT's kernels.
Finding LookAtHostLibraries() {
  const char* const blas = std::getenv("GRIDLOOM_BLAS");
  const char* const fft = std::getenv("GRIDLOOM_FFT");
  std::string product, transform;
  if (const std::string_view wanted = blas != nullptr ? blas : ""; wanted.empty()) {
    product = FirstLibrary(settings::kBlasLibraries);
  } else if (wanted != "off") {
    product = FirstLibrary({&blas, 1});
  }
  if (const std::string wanted = fft != nullptr ? fft : ""; wanted != "off") {
    const std::string file = (wanted.empty() ? "" : wanted + "/") + settings::kFftwLibraries[0];
    const char* const name = file.c_str();
    transform = FirstLibrary({&name, 1});
  }
  const std::string own = "Gridloom's own kernels";
  std::string text = "matrix products by " + (product.empty() ? own : product) + ", Fourier transforms by " +
                     (transform.empty() ? own : transform);
  const bool left_out = (product.empty() && blas == nullptr) || (transform.empty() && fft == nullptr);
  return left_out
             ? Note(text + ", which are slower than a library",
                    "install OpenBLAS and FFTW: libopenblas0-pthread, libfftw3-double3, libfftw3-single3 on Debian")
             : Good(text);
}

// The GPU comes before the shim, which answers to the real driver's name once it is loaded.
constexpr Check kChecks[] = {
    {"processor", LookAtProcessor},    {"code", LookAtCode},       {"memory", LookAtMemory},
    {"addresses", LookAtAddressSpace}, {"gpu", LookAtGpu},         {"shim", LookAtShim},
    {"compiler", LookAtCompiler},      {"devices", LookAtDevices}, {"cache", LookAtCache},
    {"preload", LookAtPreload},        {"nvcc", LookAtNvcc},       {"libraries", LookAtHostLibraries},
};

}  // namespace

std::span<const Check> Checks() { return kChecks; }

}  // namespace gridloom::launcher
