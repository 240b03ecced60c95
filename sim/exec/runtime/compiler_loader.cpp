#include "sim/exec/runtime/compiler_loader.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "gl_compiler_interface.h"
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
  return std::to_string(status.st_size) + "." + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
}

}  // namespace

Result<void*> OpenCompiler(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const why = dlerror();
    return Error{std::string(why ? why : "dlopen failed") + " (" + kLibrary + " belongs beside the library that launches kernels)"};
  }
  const auto interface = reinterpret_cast<CompilerInterfaceFn>(dlsym(library, "gridloom_compiler_interface"));
  const std::string found = interface ? interface() : "none";
  if (found == kCompilerInterface) return library;
  dlclose(library);
  return Error{path + " is of another build than the library that loads it (interface " + found + ", needed " + kCompilerInterface +
               "); build both, or install both"};
}

CompilerLoader::CompilerLoader(CompileFn compile, std::string id) : compile_(compile) {
  if (compile_) {
    id_ = std::move(id);
    std::call_once(once_, [] {});
    return;
  }
  path_ = FindLibrary();
  id_ = FileId(path_) + " " + ProcessorId();
}

CompilerLoader::CompilerLoader(std::string path) : path_(std::move(path)), id_(FileId(path_) + " " + ProcessorId()) {}

std::string CompilerLoader::ServicePath() const { return path_.substr(0, path_.rfind('/') + 1) + "gridloom-compile"; }

Result<CompileFn> CompilerLoader::Load() {
  std::call_once(once_, [&] {
    const Result<void*> library = OpenCompiler(path_);
    if (!library.ok()) {
      error_ = "kernels cannot be compiled: " + library.error().message;
      return;
    }
    compile_ = reinterpret_cast<CompileFn>(dlsym(*library, "gridloom_compile"));
    find_line_ = reinterpret_cast<FindLineFn>(dlsym(*library, "gridloom_find_line"));
    interpret_ = reinterpret_cast<InterpretFn>(dlsym(*library, "gridloom_interpret"));
    if (!compile_) error_ = "kernels cannot be compiled: " + path_ + " has no gridloom_compile";
  });
  if (!compile_) return Error{error_};
  return compile_;
}

InterpretFn CompilerLoader::LoadInterpret() { return Load().ok() ? interpret_ : nullptr; }
FindLineFn CompilerLoader::LoadFindLine() { return Load().ok() ? find_line_ : nullptr; }

}  // namespace gridloom::exec
