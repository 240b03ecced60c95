// Values of the warp form: a scalar where its shape says that all lanes follow from one, else all lanes.
#pragma once

#include <llvm/ADT/MapVector.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

/// A scalar base plus a constant lane pattern; `valid` (i1 or null) says whether the lanes really are that.
struct Linear {
  llvm::Value* base;
  LanePattern pattern;
  llvm::Value* valid;
};

/// The least and the greatest distance of a pattern.
inline std::pair<std::int64_t, std::int64_t> PatternExtent(const LanePattern& pattern) {
  const auto [low, high] = std::minmax_element(pattern.begin(), pattern.end());
  return {*low, *high};
}

/// Lanes that only the run tells.
struct FoundLanes {
  llvm::Value* root;
  llvm::Value* lanes;           ///< <32 x i64> addresses; or with a base <32 x i32>, an index
  llvm::Value* base = nullptr;  ///< i64
  std::int64_t unit = 1;        ///< of the index, in bytes
  bool index_signed = false;
};

/// Emits an instruction as its kind and its shape ask for.
class InstructionEmitter {
 public:
  virtual void EmitInstruction(llvm::Instruction& instruction) = 0;

 protected:
  ~InstructionEmitter() = default;
};

class WarpValues : Emitter {
 public:
  /// `emitter` emits what a value is made of before its place is reached; it is not used before code is emitted.
  WarpValues(WarpBuilder& w, InstructionEmitter& emitter) : Emitter(w), emitter_(emitter) {}

  const Shape& ShapeOf(const Value* value);
  Value* Base(Value* value);                                  ///< the scalar of a uniform, affine or indexed value
  Value* Lanes(Value* value);                                 ///< all 32 lanes
  void Define(llvm::Instruction* instruction, Value* value);  ///< scalar or lanes, as its shape says
  void StoreSlot(const llvm::Instruction* instruction, Value* value, Value* mask);
  void EmitInstruction(llvm::Instruction& instruction) { emitter_.EmitInstruction(instruction); }
  bool IsEntryValue(const Value* value);
  Value* EntryBase(llvm::Instruction* instruction);
  std::optional<LanePattern> PatternOf(Value* address);
  std::optional<Linear> AsLinear(Value* address);
  /// The lanes of an address: addresses, or an index that is cheaper to compare and to write.
  FoundLanes FoundLanesOf(Value* root);
  /// In an order that no address decides.
  const llvm::MapVector<const llvm::Instruction*, llvm::AllocaInst*>& slots() const { return slots_; }

 private:
  Value* Materialize(Value* value, const Shape& shape);
  llvm::AllocaInst* SlotOf(const llvm::Instruction* instruction);
  Value* LoadSlot(const llvm::Instruction* instruction);

  InstructionEmitter& emitter_;
  llvm::MapVector<const llvm::Instruction*, llvm::AllocaInst*> slots_;
  llvm::DenseMap<const Value*, Shape> shape_cache_;
  llvm::DenseMap<const Value*, bool> is_entry_value_;
};

}  // namespace gridloom::exec
