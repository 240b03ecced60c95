// Shapes: how a value differs between the 32 lanes of a warp. Found once per function in SPMD form by a forward
// dataflow over SSA; they decide what the vectoriser keeps in a scalar register.
//
//   kUniform   every lane that executes together has the same value                       -> one scalar
//   kAffine    base + pattern[lane], pattern known at compile time, modulo 2^width        -> one scalar (the base)
//   kIndexed   i64 only: base + pattern[lane] + scale * extend(index), index an i32 value -> one scalar + that value
//   kVector    anything else                                                              -> 32 lanes
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sim/exec/compiler/block_order.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"
#include "sim/exec/contract/abi.h"

namespace gridloom::exec {

enum class ShapeKind : std::uint8_t { kUnknown, kUniform, kAffine, kIndexed, kVector };

using LanePattern = std::array<std::int64_t, kWarpSize>;

struct Shape {
  ShapeKind kind = ShapeKind::kUnknown;
  LanePattern pattern{};               ///< kAffine, kIndexed
  std::uint8_t base_align = 0;         ///< the base is a multiple of 2^base_align
  const llvm::Value* index = nullptr;  ///< kIndexed: an i32 value, affine or vector
  std::int64_t scale = 0;              ///< kIndexed
  bool index_signed = false;           ///< kIndexed: sign or zero extension

  bool uniform() const { return kind == ShapeKind::kUniform; }
  bool vector() const { return kind == ShapeKind::kVector; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

class ShapeAnalysis {
 public:
  ShapeAnalysis(llvm::Function& function, const SpmdModule& spmd, llvm::LoopInfo& loops, const BlockOrder& order,
                const CompileOptions& options);

  Shape Of(const llvm::Value* value) const;
  /// True when control may split here: a conditional branch whose condition is not uniform.
  bool IsDivergent(const llvm::Instruction* terminator) const { return divergent_branches_.contains(terminator); }
  /// False when groups of lanes may overtake each other (loops that wait for other threads, barriers in divergent
  /// loops): then only values fixed for the whole life of the warp are uniform, and every definition is merged under
  /// its mask.
  bool lockstep() const { return lockstep_; }
  /// The same of one block. Where lanes wait for others of their warp at meetings (meetings.h) while those run on, the
  /// blocks that both run are out of step: `shape_steps.cpp` finds them.
  bool InStep(const llvm::BasicBlock* block) const { return lockstep_ && !out_of_step_.contains(block); }
  /// True when lanes of the warp that do not run `block` with the others may be alive elsewhere.
  bool MayLackLanes(const llvm::BasicBlock* block) const;
  /// Loops that can wait for another thread: their back edge burns fuel.
  bool Waits(const llvm::Loop* loop) const { return waiting_loops_.contains(loop); }
  bool has_waiting_loops() const { return !waiting_loops_.empty(); }
  /// True when some indexed value has `value` as its index: it is needed wherever that value is.
  bool IsIndex(const llvm::Value* value) const { return indexes_.contains(value); }

 private:
  void FindWaitingLoops();
  void Solve();
  /// Where lanes that part at a block may be apart.
  struct Spread {
    std::vector<const llvm::BasicBlock*> region;      ///< blocks that only some of them may reach together
    std::vector<const llvm::BasicBlock*> joins;       ///< where they can meet again having come different ways
    llvm::SmallSetVector<const llvm::Loop*, 4> left;  ///< loops that some leave while others go on
  };
  Spread SpreadFrom(const llvm::BasicBlock* block) const;
  bool PropagateBranch(llvm::BasicBlock* block);
  bool BarrierInDivergentLoop() const;
  void Restart();
  bool FindOutOfStep();
  using BlockSet = llvm::DenseSet<const llvm::BasicBlock*>;
  static BlockSet ReachableFrom(const llvm::BasicBlock* block);
  Shape Transfer(const llvm::Instruction& instruction) const;
  Shape TransferPhi(const llvm::PHINode& phi) const;
  Shape TransferBinary(const llvm::Instruction& instruction) const;
  Shape TransferCast(const llvm::CastInst& cast) const;
  bool SameOnBothSides(const llvm::ICmpInst& compare) const;
  Shape TransferCall(const llvm::CallInst& call) const;
  Shape SpecialShape(Special special) const;
  bool AllUniform(const llvm::Instruction& instruction) const;

  llvm::Function& function_;
  const SpmdModule& spmd_;
  llvm::LoopInfo& loops_;
  const BlockOrder& order_;
  const CompileOptions& options_;
  bool lockstep_ = true;
  llvm::DenseMap<const llvm::Value*, Shape> shapes_;
  llvm::DenseSet<const llvm::Instruction*> divergent_branches_;
  llvm::DenseSet<const llvm::BasicBlock*> divergent_joins_;   ///< blocks whose phis are vectors
  llvm::DenseSet<const llvm::BasicBlock*> divergent_region_;  ///< blocks that only some lanes may reach together
  llvm::DenseSet<const llvm::Loop*> left_loops_;              ///< loops that some lanes leave while others go on
  llvm::DenseSet<const llvm::BasicBlock*> out_of_step_;       ///< groups of lanes may run them at different times
  llvm::DenseSet<const llvm::Loop*> waiting_loops_;
  llvm::DenseSet<const llvm::Value*> indexes_;
};

Shape UniformShape(std::uint8_t base_align = 0);
Shape VectorShape();

}  // namespace gridloom::exec
