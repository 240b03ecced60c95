// NVRTC for programs that ask it for machine code (nvrtcGetCUBIN of an sm_ target): there is no machine that runs it here, so
// they get the PTX of the same compilation, which every module-loading function takes as well. Seen by programs and libraries
// that are linked with NVRTC; those that look its functions up with dlsym get the machine code and the loader's refusal.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "interpose/api/entry.h"

namespace {

using Program = void*;                 // nvrtcProgram
using Result = int;                    // nvrtcResult
constexpr Result kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

/// The path of the NVRTC that is loaded in this process; empty when there is none.
std::string LoadedNvrtc() {
  std::string path;
  const auto look = [](dl_phdr_info* info, std::size_t, void* found) {
    const char* name = info->dlpi_name == nullptr ? nullptr : std::strstr(info->dlpi_name, "libnvrtc.so");
    if (name == nullptr) return 0;
    *static_cast<std::string*>(found) = info->dlpi_name;
    return 1;
  };
  dl_iterate_phdr(look, &path);
  return path;
}

template <typename Function>
Function RealFunction(const char* name) {
  static void* const library = [] {
    const std::string path = LoadedNvrtc();
    return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  }();
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

/// True when the program was compiled for a real architecture and the virtual GPU is to run it.
bool WantsPtxInstead(Program program) {
  if (gridloom::api::CurrentMode() == gridloom::api::Mode::kReal) return false;
  using GetSize = Result (*)(Program, std::size_t*);
  const auto cubin_size = RealFunction<GetSize>("nvrtcGetCUBINSize"), ptx_size = RealFunction<GetSize>("nvrtcGetPTXSize");
  if (cubin_size == nullptr || ptx_size == nullptr) return false;
  std::size_t cubin = 0, ptx = 0;
  return cubin_size(program, &cubin) == 0 && cubin != 0 && ptx_size(program, &ptx) == 0 && ptx > 1;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) Result nvrtcGetCUBINSize(Program program, std::size_t* size) {
  using GetSize = Result (*)(Program, std::size_t*);
  const auto real = RealFunction<GetSize>(WantsPtxInstead(program) ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize");
  return real == nullptr ? kInternalError : real(program, size);
}

__attribute__((visibility("default"))) Result nvrtcGetCUBIN(Program program, char* data) {
  using Get = Result (*)(Program, char*);
  const auto real = RealFunction<Get>(WantsPtxInstead(program) ? "nvrtcGetPTX" : "nvrtcGetCUBIN");
  return real == nullptr ? kInternalError : real(program, data);
}

}  // extern "C"
