// SPMD form -> warp form: one function per warp of 32 threads (docs/design/executor.md).
//
// Every block exists twice. The converged copy runs when all 32 lanes are active: no masks. The divergent copy runs
// under an active mask; lanes that went another way wait in a pending set, and the earliest pending block always runs
// next.
//
//   kernel  void @gl_kernel(ptr warp), or, where no warp waits for another, a loop over the CTA's warps (CtaEntry in
//           abi.h)
//   device  R    @f.warp(ptr warp, i32 mask, 32-lane arguments…)
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

struct VectorizeResult {
  std::string error;  ///< not empty: what cannot be vectorised
  bool needs_fiber = false;
  bool simple_barriers = false;
  bool gives_way = false;         ///< its warps give way between barriers (give_way.h)
  bool by_cta = false;            ///< the kernel became a CtaEntry
  std::uint32_t check_sites = 0;  ///< memcheck: numbers given to global accesses, 0 included
};

/// Functions whose address is taken, with the number their pointers carry.
using AddressTaken = std::vector<std::pair<std::uint32_t, llvm::Function*>>;

/// Device functions of the module that the kernel may reach, the address-taken ones among them.
std::vector<llvm::Function*> DeviceFunctions(SpmdModule& spmd, const llvm::Function* kernel);
bool HasBarriers(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd);
/// Whether a thread may wait for grids that it has launched.
bool WaitsForChildren(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd);

/// Adds the warp form of `kernel` and of every device function it needs to `spmd`'s module and removes the SPMD form.
/// `static_shared_bytes`: shared memory every launch has at least, so that accesses proven below it need no check.
VectorizeResult Vectorize(SpmdModule& spmd, llvm::Function* kernel, const AddressTaken& address_taken,
                          const CompileOptions& options, std::uint32_t static_shared_bytes);

}  // namespace gridloom::exec
