// The markers of records.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class RecordBuffer;
class RecordGroups;
class LoopRecordEmitter;

class RecordEmitter : Emitter {
 public:
  RecordEmitter(WarpBuilder& w, RecordBuffer& record_buffer, RecordGroups& record_groups,
                LoopRecordEmitter& loop_records)
      : Emitter(w), record_buffer_(record_buffer), record_groups_(record_groups), loop_records_(loop_records) {}

  void EmitRecord(llvm::CallInst& call, const MarkerInfo& info);

 private:
  void MakeRecordRoom(const llvm::CallInst& call, const MarkerInfo& info);
  std::uint32_t RecordWords(const llvm::CallInst& call, const MarkerInfo& info);
  const llvm::CallInst* NextRecord(const llvm::CallInst& call) const;

  RecordBuffer& record_buffer_;
  RecordGroups& record_groups_;
  LoopRecordEmitter& loop_records_;
};

}  // namespace gridloom::exec
