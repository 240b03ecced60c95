// Records of loops: what is told before a loop, in its rounds and behind it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_record_group.h"

namespace gridloom::exec {

class WarpValues;
class RecordBuffer;

/// What is made of a loop of SpmdModule::record_loops.
struct LoopOfRecords {
  std::vector<std::int32_t> places;    ///< of its slots, in the group that begins it; -1: none
  std::uint32_t words = 0;             ///< of that group, at most
  bool told = false;                   ///< it has such places, or repeats
  bool repeats = false;                ///< where all lanes run it, one record tells all rounds
  llvm::AllocaInst* rounds = nullptr;  ///< that have ended, i64
};

class LoopRecordEmitter : Emitter {
 public:
  LoopRecordEmitter(WarpBuilder& w, WarpValues& values, RecordBuffer& record_buffer, RecordGroups& record_groups)
      : Emitter(w), values_(values), record_buffer_(record_buffer), record_groups_(record_groups) {}

  void AddToRecordGroup(llvm::CallInst& call, const RecordHeader& header);
  std::optional<std::uint32_t> RepeatedLoopAt(const llvm::BasicBlock* block);
  void BeginRecordLoop(std::uint32_t number);
  void CountRound(const llvm::BasicBlock* to);
  void LeaveRecordLoop(const llvm::BasicBlock* to);
  std::optional<std::uint32_t> PlaceInLoop(const llvm::CallInst& call, std::uint64_t& add);

  const std::map<std::uint32_t, LoopOfRecords>& loops() const { return loops_; }

 private:
  LoopOfRecords& RecordLoopAt(std::uint32_t number);
  LoopOfRecords PlanRecordLoop(const RecordLoop& from);
  bool RepeatsRecords(const llvm::Loop& loop, const std::vector<std::int32_t>& places);
  std::optional<std::uint32_t> RecordLoopOf(const llvm::Loop* loop) const;
  std::optional<std::size_t> SlotInLoop(const llvm::CallInst& call, std::uint64_t& add);
  std::size_t PutRounds(Value* rounds);

  WarpValues& values_;
  RecordBuffer& record_buffer_;
  RecordGroups& record_groups_;
  std::map<std::uint32_t, LoopOfRecords> loops_;  ///< by number
};

}  // namespace gridloom::exec
