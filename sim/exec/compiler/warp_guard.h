// Accesses that the guard zones around device memory check (contract/guard_zone.h): what a base in device memory and
// bounded distances make. Only the base is tested, once where a warp starts.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallVector.h>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

class WarpValues;

/// What an address is made of.
struct GuardedAddress {
  const llvm::Value* base = nullptr;  ///< a scalar of the warp's start; null: the zones do not check the access
  unsigned align_bits = 0;            ///< low bits of the rest that are zero
};

class AddressGuards : Emitter {
 public:
  AddressGuards(WarpBuilder& w, WarpValues& values, MemoryWindows& windows)
      : Emitter(w), values_(values), windows_(windows) {}

  /// Decides which bases whole warps rely on. Before code is emitted.
  void Plan();
  /// The mask (i32) of lanes with which a warp goes to the converged copy: of all, or of none where a base is not in
  /// device memory: then accesses are tested, which only the divergent copy does.
  Value* WholeMask();
  /// i1: the access at `call` needs no test of its own. Null: it does.
  Value* Guard(const llvm::CallInst& call, const Access& access);
  /// i1: no access of the loop that can do without its own test needs one.
  Value* GuardOf(const llvm::Loop& loop);
  /// Whether Guard may rely on what GuardOf has found to be so.
  bool relies_on_loop = false;

 private:
  struct Base {
    std::uint32_t align = 0;  ///< the least that an access wants
    bool optional = false;    ///< the kernel asks whether it is null: its accesses are tested, in whole warps too
  };

  GuardedAddress AddressOf(const llvm::CallInst& call, const Access& access);
  GuardedAddress FindAddress(const llvm::CallInst& call, const Access& access);
  Value* IsInside(const llvm::Value* base, std::uint32_t align);
  bool MayGuard(const MarkerInfo& info) const;
  void NoteTwins(const llvm::CallInst& call, const MarkerInfo& info, const Value* base);

  WarpValues& values_;
  MemoryWindows& windows_;
  llvm::DenseMap<const llvm::CallInst*, GuardedAddress> addresses_;
  llvm::MapVector<const llvm::Value*, Base> bases_;
  llvm::DenseMap<const llvm::Value*, llvm::SmallVector<const llvm::CallInst*, 8>> sites_;  ///< by base
  llvm::DenseSet<const llvm::CallInst*> twins_;  ///< that could be taken for another's instruction
};

}  // namespace gridloom::exec
