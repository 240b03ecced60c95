// The compiler library (libgridloom-compiler.so): PTX kernel -> x86-64 object. The only part that needs LLVM; the shim
// loads it with dlopen when a kernel is not in the cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "sim/exec/contract/bytecode.h"
#include "sim/exec/contract/records.h"

namespace gridloom::exec {

/// CompileOptions::block of code for any row of whole warps: y = z = 1, x a multiple of 32.
inline constexpr std::uint32_t kRowOfWarps[3] = {0, 1, 1};
/// True of such a row's shape, and of kRowOfWarps itself.
constexpr bool IsRowOfWarps(const std::uint32_t (&block)[3]) {
  return block[0] % 32 == 0 && block[1] == 1 && block[2] == 1;
}

/// Everything a kernel's code depends on besides its PTX. Part of the cache key.
struct CompileOptions {
  std::uint32_t block[3] = {0, 0, 0};  ///< block shape the code is specialised on; kRowOfWarps; zeros: any shape
  bool small_grid = true;              ///< grid times block stays below 2^31 in every dimension
  bool clusters = false;
  bool memcheck = false;
  Recording record = Recording::kNone;
  bool fetch_ahead = false;  ///< loops fetch what their lanes will walk through (compiler/fetch_ahead.h)
  /// Lanes that go on one by one where a loop has no more left (compiler/warp_lane_loop.cpp).
  std::uint8_t few_lanes = 8;
  /// Device memory has guard zones (contract/guard_zone.h) where the code runs: they check what they can.
  bool guard_zones = false;
  std::string cpu;       ///< "" = host CPU; otherwise "x86-64-v4", "x86-64-v3", "x86-64"
  bool keep_ir = false;  ///< fill CompiledKernel::ir
};

/// What who runs a kernel has to know of its code. The lifter and the vectorizer, or the maker of bytecode, find it
/// out; the cache of code keeps it beside the code.
struct KernelFacts {
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;  ///< per thread: the deepest chain of frames, each function once if recursive
  std::uint32_t frame_bytes = 0;  ///< stack frames of kernel and device functions together, each once
  std::uint32_t check_sites = 0;  ///< memcheck: numbers given to global accesses, 0 included
  bool needs_fiber = false;       ///< has barriers or spin loops: warps of a CTA must be able to switch
  bool simple_barriers = false;   ///< only full-CTA barrier 0: the in-line ring switch suffices
  bool gives_way = false;         ///< its warps give way to each other between barriers: the ring must count them
  bool recursive = false;
  bool by_cta = false;  ///< its entry is a CtaEntry
  bool by_row = false;  ///< that runs further CTAs of the row, too
  bool turns = false;   ///< whose warps take turns at barriers: each needs local memory of its own

  /// These alone, of one that has them beside its code.
  KernelFacts& facts() { return *this; }
  const KernelFacts& facts() const { return *this; }
};

struct CompiledKernel : KernelFacts {
  std::vector<std::uint8_t> object;  ///< ELF relocatable object, entry symbol "gl_kernel" (a WarpEntry, or a CtaEntry)
  std::string ir;                    ///< SPMD and warp IR as text when asked for
  std::string error;                 ///< not empty: compilation failed; one sentence with file:line
  std::uint32_t error_line = 0;
};

/// A kernel for the interpreter (contract/bytecode.h).
struct InterpretedKernel : KernelFacts {
  Bytecode code;
  std::string error;    ///< not empty: compilation would fail, too
  std::string refuses;  ///< not empty: what the interpreter cannot run, though machine code can
};

/// Bytecode of a kernel: what gridloom_compile takes, in some hundredths of its time. Options with records are refused.
extern "C" __attribute__((visibility("default"))) void gridloom_interpret(const ptx::Module* module, const char* kernel,
                                                                          const CompileOptions* options,
                                                                          InterpretedKernel* out);
using InterpretFn = decltype(&gridloom_interpret);

/// Entry point of the library, found with dlsym. Thread-safe.
extern "C" __attribute__((visibility("default"))) void gridloom_compile(const ptx::Module* module, const char* kernel,
                                                                        const CompileOptions* options,
                                                                        CompiledKernel* out);
using CompileFn = decltype(&gridloom_compile);

/// Identifies this compiler build (versions of lifter, ABI, LLVM, CPU) for the cache key.
extern "C" __attribute__((visibility("default"))) const char* gridloom_compiler_id(const char* cpu);

}  // namespace gridloom::exec
