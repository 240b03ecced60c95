#include "sim/exec/runtime/compiler_loader.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "gl_compiler_interface.h"
#include "rewriter/support/own_thread.h"
#include "sim/exec/compiler/interface.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gridloom::exec {
namespace {

constexpr char kLibrary[] = "libgridloom-compiler.so";

/// The directory of the library (or program) this code is part of.
std::string OwnDirectory() {
  Dl_info info{};
  static const char kHere = 0;
  if (dladdr(&kHere, &info) == 0 || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Beside this library, or one up: a test program stands in a folder of the build tree.
std::string FindLibrary() {
  const std::string here = OwnDirectory();
  struct stat status {};
  for (const char* const step : {"/", "/../"})
    if (stat((here + step + kLibrary).c_str(), &status) == 0) return here + step + kLibrary;
  return here + "/" + kLibrary;
}

std::string ProcessorId() {
#if defined(__x86_64__)
  std::string id = "x86";
  const auto add = [&](unsigned value) { id += ' ' + std::to_string(value); };
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d)) add(b), add(c), add(d);
  if (__get_cpuid(1, &a, &b, &c, &d)) add(a), add(c), add(d);  // not b: it numbers the core
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) add(b), add(c), add(d);
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) add(a), add(b), add(c), add(d);
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) add(c), add(d);
  return id;
#else
  return "host";
#endif
}

std::string FileId(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "none";
  return std::to_string(status.st_size) + "." + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec);
}

}  // namespace

Result<void*> OpenCompiler(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const why = dlerror();
    return Error{std::string(why ? why : "dlopen failed") + " (" + kLibrary +
                 " belongs beside the library that launches kernels)"};
  }
  const auto interface = reinterpret_cast<CompilerInterfaceFn>(dlsym(library, "gridloom_compiler_interface"));
  const std::string found = interface ? interface() : "none";
  if (found == kCompilerInterface) return library;
  dlclose(library);
  return Error{path + " is of another build than the library that loads it (interface " + found + ", needed " +
               kCompilerInterface + "); build both, or install both"};
}

/// What has been loaded. `functions` does not change once `known` is true.
struct CompilerLoader::Loading {
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false;  ///< by a thread that loads for threads of ours
  std::atomic<bool> known{false};
  Functions functions;

  void Publish(Functions opened) {
    const std::lock_guard lock(mutex);
    if (known.load(std::memory_order_relaxed)) return;
    functions = std::move(opened);
    known.store(true, std::memory_order_release);
    changed.notify_all();
  }
};

CompilerLoader::CompilerLoader(CompileFn compile, std::string id) : loading_(std::make_shared<Loading>()) {
  if (compile) {
    id_ = std::move(id);
    Functions functions;
    functions.compile = compile;
    loading_->Publish(std::move(functions));
    return;
  }
  path_ = FindLibrary();
  id_ = FileId(path_) + " " + ProcessorId();
}

CompilerLoader::CompilerLoader(std::string path)
    : path_(std::move(path)), id_(FileId(path_) + " " + ProcessorId()), loading_(std::make_shared<Loading>()) {}

std::string CompilerLoader::ServicePath() const { return path_.substr(0, path_.rfind('/') + 1) + "gridloom-compile"; }

CompilerLoader::Functions CompilerLoader::Open(const std::string& path) {
  Functions functions;
  const Result<void*> library = OpenCompiler(path);
  if (!library.ok()) {
    functions.error = "kernels cannot be compiled: " + library.error().message;
    return functions;
  }
  functions.compile = reinterpret_cast<CompileFn>(dlsym(*library, "gridloom_compile"));
  functions.find_line = reinterpret_cast<FindLineFn>(dlsym(*library, "gridloom_find_line"));
  functions.interpret = reinterpret_cast<InterpretFn>(dlsym(*library, "gridloom_interpret"));
  if (!functions.compile) functions.error = "kernels cannot be compiled: " + path + " has no gridloom_compile";
  return functions;
}

const CompilerLoader::Functions& CompilerLoader::Get() {
  Loading& loading = *loading_;
  if (loading.known.load(std::memory_order_acquire)) return loading.functions;
  if (!t_own_thread) {
    loading.Publish(Open(path_));  // twice at the same time is no harm: the loader has one library
    return loading.functions;
  }
  constexpr auto kLongest = std::chrono::seconds(2);
  std::unique_lock lock(loading.mutex);
  if (!std::exchange(loading.begun, true)) {
    const OwnThreadSignals signals;
    std::thread([shared = loading_, path = path_] {
      BecomeOwnThread();
      shared->Publish(Open(path));
    }).detach();
  }
  const bool known =
      loading.changed.wait_for(lock, kLongest, [&] { return loading.known.load(std::memory_order_relaxed); });
  static const Functions busy = [] {
    Functions none;
    none.error =
        "kernels cannot be compiled now: another thread of the program loads or unloads a library and does not come to "
        "an end";
    return none;
  }();
  return known ? loading.functions : busy;
}

Result<CompileFn> CompilerLoader::Load() {
  const Functions& functions = Get();
  if (!functions.compile) return Error{functions.error};
  return functions.compile;
}

bool CompilerLoader::settled() const { return loading_->known.load(std::memory_order_acquire); }

InterpretFn CompilerLoader::LoadInterpret() { return Get().interpret; }
FindLineFn CompilerLoader::LoadFindLine() { return Get().find_line; }

}  // namespace gridloom::exec
