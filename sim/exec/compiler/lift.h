// PTX -> SPMD form (spmd.h): lifts a kernel and every function it can reach.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

struct LiftedKernel {
  std::string error;                 ///< not empty: refused; one sentence that names the PTX construct
  std::uint32_t error_line = 0;      ///< PTX line of it
  KernelFacts facts;                 ///< static_shared_bytes, local_bytes and recursive
  llvm::Function* kernel = nullptr;  ///< `void gl_spmd_kernel()`
  /// Functions an indirect call may reach, by their number in the symbol table (FunctionPointer(number)).
  std::vector<std::pair<std::uint32_t, llvm::Function*>> address_taken;
};

/// An attribute of functions that a pass has added (their names begin with gridloom_).
inline constexpr const char* kOfPass = "gl-of-pass";

/// Signature of a device function `f` in SPMD form: (i64 frame base, i64 local offset of every return value that does
/// not come back in a register, then the parameters). Scalar parameters are values of their PTX type, all others i64
/// local offsets. A single scalar return value is the LLVM return value.
LiftedKernel LiftKernel(const ptx::Module& module, const ptx::Function& kernel, const CompileOptions& options,
                        SpmdModule& out);

}  // namespace gridloom::exec
