// Control flow of the warp form: blocks, branches, the entry.
#pragma once

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_copies.h"

namespace gridloom::exec {

class WarpValues;
class RecordBuffer;
class RecordGroups;
class LoopRecordEmitter;
class LoadGroups;
class WarpFrame;
class MeetingEmitter;
class BarrierEmitter;
class ArmEmitter;
class LaneLoopEmitter;
class CtaLoopEmitter;
class WholeConditions;
class AddressGuards;

class ControlEmitter : Emitter {
 public:
  ControlEmitter(WarpBuilder& w, WarpValues& values, RecordBuffer& record_buffer, RecordGroups& record_groups,
                 LoopRecordEmitter& loop_records, LoadGroups& load_groups, WarpFrame& frame, BlockCopies& copies,
                 MeetingEmitter& meetings, BarrierEmitter& barriers, ArmEmitter& arms, LaneLoopEmitter& lane_loops,
                 CtaLoopEmitter& cta_loop, WholeConditions& conditions, AddressGuards& guards)
      : Emitter(w),
        values_(values),
        record_buffer_(record_buffer),
        record_groups_(record_groups),
        loop_records_(loop_records),
        load_groups_(load_groups),
        frame_(frame),
        copies_(copies),
        meetings_(meetings),
        barriers_(barriers),
        arms_(arms),
        lane_loops_(lane_loops),
        cta_loop_(cta_loop),
        conditions_(conditions),
        guards_(guards) {}

  void PrepareBlocks();
  void EmitEntry();
  void EmitBlock(unsigned index, bool divergent);
  /// Behind all blocks: how the function ends.
  void EmitEnd();

 private:
  void EmitTerminator(llvm::Instruction& terminator);
  void EmitReturn(llvm::ReturnInst& ret);
  llvm::BasicBlock* ExitOneByOne(const llvm::BranchInst& branch) const;
  void EmitLeaving(const llvm::BranchInst& branch, llvm::BasicBlock* exit, Value* taken);
  void EmitWholeTests(Value* condition, llvm::BasicBlock* all, llvm::BasicBlock* none);
  void EmitCommonEdge(llvm::BasicBlock* block, llvm::BasicBlock* to);
  void EmitDivergentBranch(llvm::BranchInst& branch);
  void EmitSplit(llvm::BasicBlock* on_true, llvm::BasicBlock* on_false, Value* taken);
  void EmitEdge(llvm::BasicBlock* to, Value* mask);
  void KeepSlotsInMemory();

  WarpValues& values_;
  RecordBuffer& record_buffer_;
  RecordGroups& record_groups_;
  LoopRecordEmitter& loop_records_;
  LoadGroups& load_groups_;
  WarpFrame& frame_;
  BlockCopies& copies_;
  MeetingEmitter& meetings_;
  BarrierEmitter& barriers_;
  ArmEmitter& arms_;
  LaneLoopEmitter& lane_loops_;
  CtaLoopEmitter& cta_loop_;
  WholeConditions& conditions_;
  AddressGuards& guards_;
  llvm::AllocaInst* return_slot_ = nullptr;
  llvm::DenseSet<const llvm::BasicBlock*>
      arm_blocks_;  ///< small arms of divergent branches: no divergent copy of their own
};

}  // namespace gridloom::exec
