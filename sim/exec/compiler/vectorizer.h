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
#include <vector>

#include "rewriter/support/result.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

/// Device functions of the module that the kernel may reach, the address-taken ones among them.
std::vector<llvm::Function*> DeviceFunctions(SpmdModule& spmd, const llvm::Function* kernel);
bool HasBarriers(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd);
/// Whether a thread may wait for grids that it has launched.
bool WaitsForChildren(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd);

/// Adds the warp form of `kernel` and of every device function it needs to `spmd`'s module and removes the SPMD form.
/// `facts` has what the lifter knows (accesses proven to be below static_shared_bytes need no check) and gets what its
/// warps do. `may_take_turns`: at barriers, within one call (turns.h). Fails with what cannot be vectorised.
Status Vectorize(SpmdModule& spmd, llvm::Function* kernel, const AddressTaken& address_taken,
                 const CompileOptions& options, KernelFacts& facts, bool may_take_turns = true);

}  // namespace gridloom::exec
