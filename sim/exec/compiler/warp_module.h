// What the functions of a module share while it is vectorised, and types of the warp form.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <string>

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"
#include "sim/exec/compiler/thread_ends.h"

namespace gridloom::exec {

/// What the functions of one module share while it is vectorised.
struct WarpModule {
  WarpModule(SpmdModule& spmd, const CompileOptions& options, const AddressTaken& address_taken,
             const ThreadEnds& thread_ends)
      : spmd(spmd), options(options), address_taken(address_taken), thread_ends(thread_ends) {}

  SpmdModule& spmd;
  const CompileOptions& options;
  const AddressTaken& address_taken;
  const ThreadEnds& thread_ends;
  llvm::DenseMap<const llvm::Function*, llvm::Function*> warp_of;  ///< device function -> its warp form
  std::uint32_t static_shared_bytes = 0;
  bool simple_barriers = true;
  bool avx512 = false;
  unsigned few_lanes = 8;  ///< CompileOptions::few_lanes
  unsigned pieces = 1;     ///< machine vectors that 16 words take
  bool by_cta = false;     ///< the kernel's warp form is a CtaEntry
  bool by_row = false;     ///< that goes on with the next CTAs of the row
  bool turns = false;      ///< its warps take turns at barriers within one call (turns.h)
  bool gives_way = false;  ///< some warp gives way between barriers (give_way.h)
  std::string error;
  std::uint32_t check_sites = 1;                                 ///< memcheck: the next number of a global access
  llvm::DenseMap<const llvm::CallInst*, std::uint32_t> site_of;  ///< both copies of a block share it

  const MarkerInfo* MarkerOf(const llvm::Instruction& instruction) const;
  bool memcheck() const { return options.memcheck; }
};

/// The 32-lane type of a thread's value: <32 x T>; <32*k x T> for a small vector; struct by element. The same for fewer
/// lanes.
llvm::Type* WarpType(llvm::Type* type, unsigned lanes = kWarpSize);
/// The type in which a value is kept in memory between blocks: masks as i32.
llvm::Type* StorageType(llvm::Type* warp_type);

}  // namespace gridloom::exec
