// NVRTC for programs that ask it for machine code (nvrtcGetCUBIN of an sm_ target): there is no machine that runs it
// here, so they get the PTX of the same compilation, which every module-loading function takes as well. -maxrregcount,
// which PTX does not tell of, is put into it. Of a program that is to be linked (-rdc=true) they get the machine code
// with the PTX in a section beside it: the linker they give it to next, nvJitLink or nvlink, takes nothing but machine
// code as a cubin.
#include "interpose/hooks/nvrtc.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "interpose/objects/ptx_sources.h"
#include "interpose/real/driver.h"
#include "rewriter/image/kept_ptx.h"

namespace {

using Program = void*;                 // nvrtcProgram
using Result = int;                    // nvrtcResult
constexpr Result kSuccess = 0;         // NVRTC_SUCCESS
constexpr Result kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

using GetSize = Result(Program, std::size_t*);
using Get = Result(Program, char*);
using Compile = Result(Program, int, const char* const*);
using Destroy = Result(Program*);

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(gridloom::hooks::LoadedFunction("libnvrtc.so", name));
}

/// The limits of registers that programs were compiled with. Locked by whoever uses it.
struct Limits {
  std::mutex mutex;
  std::unordered_map<Program, std::uint32_t> registers;
};

Limits& TheLimits() {
  static Limits limits;
  return limits;
}

/// -maxrregcount of the options, which may be one word or two.
std::uint32_t MaxRegistersOf(int count, const char* const* options) {
  std::string all;
  for (int i = 0; i < count; ++i) all += std::string(options[i]) + " ";
  return gridloom::session::MaxRegisters(all);
}

std::uint32_t LimitOf(Program program) {
  Limits& limits = TheLimits();
  const std::lock_guard lock(limits.mutex);
  const auto at = limits.registers.find(program);
  return at != limits.registers.end() ? at->second : 0;
}

void Forget(Program program) {
  Limits& limits = TheLimits();
  const std::lock_guard lock(limits.mutex);
  limits.registers.erase(program);
}

/// The machine code with `ptx` beside it, where it is relocatable; nothing otherwise.
std::optional<std::string> RelocatableWith(Program program, std::size_t cubin_size, std::string_view ptx) {
  const auto get_cubin = Real<Get>("nvrtcGetCUBIN");
  std::string cubin(cubin_size, '\0');
  if (get_cubin == nullptr || get_cubin(program, cubin.data()) != kSuccess) return std::nullopt;
  Elf64_Ehdr header;
  if (cubin.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, cubin.data(), sizeof(header));
  if (header.e_type != ET_REL) return std::nullopt;
  const auto kept = gridloom::image::KeepPtx(gridloom::image::AsBytes(cubin), ptx);
  if (!kept.ok()) return std::nullopt;
  return std::string(gridloom::image::AsText(*kept));
}

/// What to hand out in place of machine code: PTX with its final zero, or code to link; nothing where the program was
/// compiled for no real architecture, or a real GPU is there to run it.
std::optional<std::string> ImageInstead(Program program) {
  if (gridloom::api::CurrentMode() == gridloom::api::Mode::kReal) return std::nullopt;
  const auto cubin_size = Real<GetSize>("nvrtcGetCUBINSize"), ptx_size = Real<GetSize>("nvrtcGetPTXSize");
  const auto get_ptx = Real<Get>("nvrtcGetPTX");
  if (cubin_size == nullptr || ptx_size == nullptr || get_ptx == nullptr) return std::nullopt;
  std::size_t cubin = 0, bytes = 0;
  if (cubin_size(program, &cubin) != kSuccess || cubin == 0) return std::nullopt;
  if (ptx_size(program, &bytes) != kSuccess || bytes <= 1) return std::nullopt;
  std::string ptx(bytes, '\0');
  if (get_ptx(program, ptx.data()) != kSuccess) return std::nullopt;
  ptx.resize(std::strlen(ptx.c_str()));
  ptx = gridloom::session::WithMaxRegisters(std::move(ptx), LimitOf(program));
  if (auto relocatable = RelocatableWith(program, cubin, ptx)) return relocatable;
  ptx.push_back('\0');
  return ptx;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) Result nvrtcCompileProgram(Program program, int count,
                                                                  const char* const* options) {
  const auto real = Real<Compile>("nvrtcCompileProgram");
  if (real == nullptr) return kInternalError;
  Forget(program);
  const Result result = real(program, count, options);
  if (const std::uint32_t limit = result == kSuccess ? MaxRegistersOf(count, options) : 0; limit != 0) {
    const std::lock_guard lock(TheLimits().mutex);
    TheLimits().registers[program] = limit;
  }
  return result;
}

__attribute__((visibility("default"))) Result nvrtcDestroyProgram(Program* program) {
  const auto real = Real<Destroy>("nvrtcDestroyProgram");
  if (real == nullptr) return kInternalError;
  if (program != nullptr) Forget(*program);
  return real(program);
}

__attribute__((visibility("default"))) Result nvrtcGetCUBINSize(Program program, std::size_t* size) {
  const auto real = Real<GetSize>("nvrtcGetCUBINSize");
  if (real == nullptr) return kInternalError;
  const auto image = size != nullptr ? ImageInstead(program) : std::nullopt;
  if (!image) return real(program, size);
  *size = image->size();
  return kSuccess;
}

__attribute__((visibility("default"))) Result nvrtcGetCUBIN(Program program, char* data) {
  const auto real = Real<Get>("nvrtcGetCUBIN");
  if (real == nullptr) return kInternalError;
  const auto image = data != nullptr ? ImageInstead(program) : std::nullopt;
  if (!image) return real(program, data);
  std::copy(image->begin(), image->end(), data);
  return kSuccess;
}

}  // extern "C"

std::span<const gridloom::hooks::Answer> gridloom::hooks::NvrtcAnswers() {
  static const Answer kAnswers[] = {{"nvrtcCompileProgram", reinterpret_cast<void*>(&nvrtcCompileProgram)},
                                    {"nvrtcDestroyProgram", reinterpret_cast<void*>(&nvrtcDestroyProgram)},
                                    {"nvrtcGetCUBIN", reinterpret_cast<void*>(&nvrtcGetCUBIN)},
                                    {"nvrtcGetCUBINSize", reinterpret_cast<void*>(&nvrtcGetCUBINSize)}};
  return kAnswers;
}
