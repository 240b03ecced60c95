// The buffer that a warp writes its records into (sim/exec/contract/records.h).
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class HelperCalls;

/// Where the next record goes: between blocks the slot says so, in a block the cursor from the first record on.
class RecordBuffer : Emitter {
 public:
  RecordBuffer(WarpBuilder& w, HelperCalls& calls) : Emitter(w), calls_(calls) {}

  void TakeRecordRoom(std::uint32_t words);
  Value* RecordCursorOf(Value* warp);
  void EndWarpRecords();
  void TakeRecordCursor();
  void ReturnRecordCursor();
  Value* PutWords(Value* cursor, llvm::ArrayRef<Value*> words);
  llvm::Function* RecordHelper(const char* name, Helper helper);
  /// Writes words where the cursor is, and moves it behind them.
  void Put(llvm::ArrayRef<Value*> words) { cursor = PutWords(cursor, words); }

  llvm::AllocaInst* slot = nullptr;  ///< null: nothing is recorded
  Value* cursor = nullptr;           ///< null: as the slot says
  std::uint32_t room = 0;            ///< words for which there is room from there on

 private:
  Value* FlushRecordsBeyondLimit(Value* cursor);

  HelperCalls& calls_;
};

/// Whether a call writes records itself.
bool MayRecord(const WarpModule& module, const llvm::CallInst& call);

}  // namespace gridloom::exec
