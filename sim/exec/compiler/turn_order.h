// The order in which warps that take turns run (turns.h): from one warp to the next, and from one turn to the next.
//
// Most CTAs keep *step*: in each turn all warps begin at the same place and stop at the same barrier, or all end. Then
// one word says for all of them where they began and where the first of them has stopped. Where a warp comes to another
// place, each frame is told where its warp goes on, and is asked from then on.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace gridloom::exec {

/// A place where a warp stops until all others have come to a barrier or ended.
struct TurnStop {
  llvm::BasicBlock *before, *after;
  bool whole = false;  ///< no lane of the warp is elsewhere
};

/// What a warp runs in one turn: from its start, or from behind a stop.
struct TurnRegion {
  explicit TurnRegion(llvm::BasicBlock* head = nullptr) : head(head) {}

  llvm::BasicBlock* head;
  llvm::SmallVector<std::pair<unsigned, unsigned>, 2> stops;  ///< that end it, and how many blocks away; nearest first
  bool ends = false;                                          ///< a warp may end in it
  unsigned end_away = 0;                                      ///< how many blocks away that is
  /// Warps from this number on go the likely way, and do nothing on it; 0: that is not known.
  unsigned idle_from = 0;
  llvm::PHINode *warp = nullptr, *frame = nullptr;
  llvm::Instruction* note = nullptr;  ///< of the warp that runs
};

/// All of a function: the regions of its start and of each stop, in that order.
struct TurnPlaces {
  std::vector<TurnStop> stops;
  std::vector<TurnRegion> regions;
  llvm::DenseMap<llvm::BasicBlock*, unsigned> stop_of;  ///< by the block before it
  llvm::BasicBlock* done = nullptr;                     ///< where warps end; null: none does
  llvm::BasicBlock* over = nullptr;                     ///< behind the end of all warps

  void FindRegions();
  /// The regions that `stop` ends, the nearest first; stops.size() is the end.
  llvm::SmallVector<unsigned, 4> RegionsBefore(unsigned stop) const;
  /// All warps go through the same stops, one after the other, and end behind the last one.
  bool AlwaysInStep() const;
  /// Where a whole warp that begins with `region` most likely stops.
  unsigned LikelyStop(unsigned region) const;
};

/// Frames of the warps, behind each other.
struct TurnFrames {
  std::uint64_t bytes = 0;         ///< of one
  std::uint64_t state_offset = 0;  ///< of the place (i32) where its warp goes on, where warps may lose step
  unsigned warps = 0;
};

/// Connects the regions. `start` is the block before the first one, where a CTA begins; `warp` and `frame` stand for
/// those of the warp that runs, at the end of each region.
class TurnOrder {
 public:
  TurnOrder(llvm::Function& function, TurnPlaces& places, const TurnFrames& frames, llvm::BasicBlock* start,
            llvm::Value* warp, llvm::Value* frame);

  void Connect();

 private:
  using Builder = llvm::IRBuilder<>;
  void BeginRegion(TurnRegion& region);
  void PrepareFrames();
  static void Enter(Builder& b, TurnRegion& region, llvm::Value* warp, llvm::Value* frame);
  void EnterLikely(Builder& b, llvm::ArrayRef<unsigned> likely, llvm::Value* warp, llvm::Value* frame);
  std::pair<llvm::BasicBlock*, llvm::BasicBlock*> NextWarp(Builder& b, llvm::Value* next, llvm::Value* end);
  llvm::Value* EndOfStep(unsigned region);
  llvm::BasicBlock* GoOn(Builder& b, llvm::Value* warp, llvm::Value* frame, llvm::ArrayRef<unsigned> likely);
  void BeginTurn(Builder& b, llvm::ArrayRef<unsigned> likely);
  llvm::SmallVector<unsigned, 4> InStepBefore(unsigned stop) const;
  void EndBy(unsigned stop);
  void EndInStep(Builder& b, unsigned stop, llvm::ArrayRef<unsigned> before);
  void StepOn(Builder& b, unsigned region, unsigned stop);
  void BeginStep(Builder& b, unsigned region);
  void EmitUnexpected(Builder& b, unsigned stop, llvm::ArrayRef<unsigned> before, llvm::Value* step,
                      llvm::BasicBlock* again);
  void EmitLoseStep();
  void EmitOver(llvm::BasicBlock* over);
  void EndCta(Builder& b);
  void EmitDispatch();
  llvm::ConstantInt* Step(unsigned region, unsigned stop);
  std::uint32_t StateAt(unsigned stop) const { return stop + 1; }
  llvm::BasicBlock* NewBlock(const char* name) {
    return llvm::BasicBlock::Create(function_.getContext(), name, &function_);
  }
  static llvm::Value* Slot(Builder& b, llvm::Value* frame, std::uint64_t offset) {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), frame, offset);
  }

  llvm::Function& function_;
  TurnPlaces& places_;
  const TurnFrames& layout_;
  llvm::BasicBlock* const start_;
  llvm::Value *const warp_, *const frame_;
  const bool always_in_step_;
  llvm::AllocaInst* frames_ = nullptr;
  llvm::AllocaInst* step_ = nullptr;     ///< i32: Step of the turn, or kNoStep
  llvm::AllocaInst* waiting_ = nullptr;  ///< i32, out of step: a warp has stopped in this turn
  TurnRegion dispatch_;                  ///< where a frame says how to go on
  TurnRegion lose_step_;                 ///< where a warp has come to another stop than those before it
  llvm::PHINode* lost_at_ = nullptr;     ///< its stop (i32)
};

}  // namespace gridloom::exec
