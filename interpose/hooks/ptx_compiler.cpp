// The toolkit's assembler as a library, nvPTXCompiler, for programs that look its functions up in a library that has
// them (Mojo: libNVPTX.so). What they get is the machine code with its PTX in a section beside it
// (rewriter/image/kept_ptx.h); the module-loading functions find it there. The toolkit has this library as an archive
// only: what is linked into a program itself is not seen here. Signatures and results: CUDA 13.0, PTX Compiler APIs.
#include "interpose/hooks/ptx_compiler.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/base/log.h"
#include "interpose/hooks/answer.h"
#include "interpose/objects/assembler_options.h"
#include "interpose/real/driver.h"
#include "rewriter/image/kept_ptx.h"

namespace gridloom::hooks {
namespace {

using Compiler = void*;               // nvPTXCompilerHandle
using Result = int;                   // nvPTXCompileResult
constexpr Result kSuccess = 0;        // NVPTXCOMPILE_SUCCESS
constexpr Result kInternalError = 4;  // NVPTXCOMPILE_ERROR_INTERNAL

struct Compilation {
  std::string ptx;
  std::vector<std::string> options;  ///< of the last nvPTXCompilerCompile
};

/// The library that the functions stand in front of, and what is being compiled by it.
struct Compilers {
  std::mutex mutex;
  std::string library;  ///< its path
  std::unordered_map<Compiler, Compilation> compilations;
};

Compilers& TheCompilers() {
  static Compilers* const compilers = new Compilers;  // it is there as long as programs' destructors
  return *compilers;
}

template <typename Function>
Function* Real(const char* name) {
  std::string library;
  {
    const std::lock_guard lock(TheCompilers().mutex);
    library = TheCompilers().library;
  }
  return library.empty() ? nullptr : reinterpret_cast<Function*>(LoadedFunction(library.c_str(), name));
}

Result Create(Compiler* compiler, std::size_t bytes, const char* ptx) {
  const auto real = Real<Result(Compiler*, std::size_t, const char*)>("nvPTXCompilerCreate");
  if (real == nullptr) return kInternalError;
  const Result result = real(compiler, bytes, ptx);
  if (result != kSuccess || ptx == nullptr) return result;
  const std::lock_guard lock(TheCompilers().mutex);
  TheCompilers().compilations[*compiler] = {.ptx = std::string(ptx, strnlen(ptx, bytes)), .options = {}};
  return result;
}

Result Compile(Compiler compiler, int count, const char* const* options) {
  const auto real = Real<Result(Compiler, int, const char* const*)>("nvPTXCompilerCompile");
  if (real == nullptr) return kInternalError;
  const Result result = real(compiler, count, options);
  const std::lock_guard lock(TheCompilers().mutex);
  const auto at = TheCompilers().compilations.find(compiler);
  if (result == kSuccess && at != TheCompilers().compilations.end())
    at->second.options.assign(options, options + std::max(count, 0));
  return result;
}

Result Destroy(Compiler* compiler) {
  const auto real = Real<Result(Compiler*)>("nvPTXCompilerDestroy");
  if (real == nullptr) return kInternalError;
  if (compiler != nullptr) {
    const std::lock_guard lock(TheCompilers().mutex);
    TheCompilers().compilations.erase(*compiler);
  }
  return real(compiler);
}

/// The compiled program with its PTX, or as the library has it where a real GPU runs it. `result`: of the library's
/// calls.
std::vector<std::byte> Image(Compiler compiler, Result* result) {
  const auto real_size = Real<Result(Compiler, std::size_t*)>("nvPTXCompilerGetCompiledProgramSize");
  const auto real_program = Real<Result(Compiler, void*)>("nvPTXCompilerGetCompiledProgram");
  std::vector<std::byte> cubin;
  *result = kInternalError;
  if (real_size == nullptr || real_program == nullptr) return cubin;
  std::size_t bytes = 0;
  if (*result = real_size(compiler, &bytes); *result != kSuccess) return cubin;
  cubin.resize(bytes);
  if (*result = real_program(compiler, cubin.data()); *result != kSuccess || api::CurrentMode() == api::Mode::kReal)
    return cubin;
  Compilation compilation;
  {
    const std::lock_guard lock(TheCompilers().mutex);
    const auto at = TheCompilers().compilations.find(compiler);
    if (at == TheCompilers().compilations.end()) return cubin;
    compilation = at->second;
  }
  auto kept = image::KeepPtx(cubin, session::WithAssemblerOptions(compilation.ptx, compilation.options));
  if (kept.ok()) return *std::move(kept);
  session::LogFormat(session::LogLevel::kInfo, "nvPTXCompiler: the PTX is not kept in what it compiled: %s",
                     kept.error().message.c_str());
  return cubin;
}

Result GetCompiledProgramSize(Compiler compiler, std::size_t* bytes) {
  Result result = kSuccess;
  const std::vector<std::byte> image = Image(compiler, &result);
  if (result == kSuccess && bytes != nullptr) *bytes = image.size();
  return result;
}

Result GetCompiledProgram(Compiler compiler, void* program) {
  Result result = kSuccess;
  const std::vector<std::byte> image = Image(compiler, &result);
  if (result == kSuccess && program != nullptr) std::memcpy(program, image.data(), image.size());
  return result;
}

const Answer kAnswers[] = {{"nvPTXCompilerCreate", reinterpret_cast<void*>(&Create)},
                           {"nvPTXCompilerCompile", reinterpret_cast<void*>(&Compile)},
                           {"nvPTXCompilerDestroy", reinterpret_cast<void*>(&Destroy)},
                           {"nvPTXCompilerGetCompiledProgramSize", reinterpret_cast<void*>(&GetCompiledProgramSize)},
                           {"nvPTXCompilerGetCompiledProgram", reinterpret_cast<void*>(&GetCompiledProgram)}};

}  // namespace

void* PtxCompilerAnswer(std::string_view name, const void* real) {
  const auto answer = std::ranges::find(kAnswers, name, [](const Answer& one) { return std::string_view(one.name); });
  Dl_info found;
  if (answer == std::end(kAnswers) || dladdr(real, &found) == 0 || found.dli_fname == nullptr) return nullptr;
  Compilers& compilers = TheCompilers();
  const std::lock_guard lock(compilers.mutex);
  // A second library of this kind keeps its functions: a handle does not tell whose it is.
  const bool gone = LoadedFunction(compilers.library.c_str(), "nvPTXCompilerCreate") == nullptr;
  if (compilers.library.empty() || gone) compilers.library = found.dli_fname;
  return compilers.library == found.dli_fname ? answer->function : nullptr;
}

}  // namespace gridloom::hooks
