// NVRTC for programs that ask it for machine code (nvrtcGetCUBIN of an sm_ target): there is no machine that runs it here, so
// they get the PTX of the same compilation, which every module-loading function takes as well.
#include "interpose/hooks/nvrtc.h"

#include <cstddef>

#include "interpose/api/entry.h"

namespace {

using Program = void*;                 // nvrtcProgram
using Result = int;                    // nvrtcResult
constexpr Result kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

template <typename Function>
Function RealFunction(const char* name) {
  return reinterpret_cast<Function>(gridloom::hooks::LoadedFunction("libnvrtc.so", name));
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

std::span<const gridloom::hooks::Answer> gridloom::hooks::NvrtcAnswers() {
  static const Answer kAnswers[] = {{"nvrtcGetCUBIN", reinterpret_cast<void*>(&nvrtcGetCUBIN)},
                                    {"nvrtcGetCUBINSize", reinterpret_cast<void*>(&nvrtcGetCUBINSize)}};
  return kAnswers;
}
