// Atomics.
#pragma once

#include <optional>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_places.h"

namespace gridloom::exec {

class HelperCalls;
class WarpValues;
class MemoryWindows;

/// An atomic that is being emitted.
struct AtomicSite {
  std::uint64_t imm = 0;
  Access access{};
  Window window{};
  llvm::Value* address = nullptr;  ///< a value of the SPMD form
  llvm::Value* out = nullptr;      ///< buffer for the old values, null where nobody wants them
  llvm::Value* b = nullptr;        ///< the lanes' operands
  llvm::Value* same_b = nullptr;   ///< the scalar where all lanes have the same operand, else null
  llvm::Value* c = nullptr;        ///< of a compare-and-swap: what is stored
};

class AtomicEmitter : Emitter {
 public:
  AtomicEmitter(WarpBuilder& w, HelperCalls& calls, WarpValues& values, MemoryWindows& windows, IrregularPlaces& places)
      : Emitter(w), calls_(calls), values_(values), windows_(windows), places_(places) {}

  void EmitAtomic(llvm::CallInst& call, const MarkerInfo& info);

 private:
  void EmitInLine(const AtomicSite& site);
  std::optional<Linear> RowOf(const AtomicSite& site);
  Value* InRange(const AtomicSite& site, const Irregular& at);
  void EmitChecked(const AtomicSite& site, const Irregular& at, const std::optional<Linear>& row);
  bool EmitReduced(const AtomicSite& site);
  void AtomicLoop(const AtomicSite& site, const Irregular& at);
  void AtomicPairs(const AtomicSite& site, const Irregular& at);
  void SlowAtomic(const AtomicSite& site);
  Value* FlushesAt(std::uint64_t imm, Space space, Value* pointer);
  Value* LaneAtomic(std::uint64_t imm, Space space, Value* pointer, Value* b, Value* c);

  HelperCalls& calls_;
  WarpValues& values_;
  MemoryWindows& windows_;
  IrregularPlaces& places_;
};

}  // namespace gridloom::exec
