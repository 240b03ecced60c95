// The loop over the warps of a CTA (CtaEntry).
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class WarpValues;
class RecordBuffer;
class LoopRecordEmitter;
class RowAccess;
class BlockCopies;

class CtaLoopEmitter : Emitter {
 public:
  CtaLoopEmitter(WarpBuilder& w, WarpValues& values, RecordBuffer& record_buffer, LoopRecordEmitter& loop_records,
                 RowAccess& rows, BlockCopies& copies)
      : Emitter(w),
        values_(values),
        record_buffer_(record_buffer),
        loop_records_(loop_records),
        rows_(rows),
        copies_(copies) {}

  void EmitLoopHead();
  void EmitLoopEnd();

 private:
  void BeginCta();
  void EndCta();
  void ForgetLastWarp(llvm::BasicBlock* at);

  WarpValues& values_;
  RecordBuffer& record_buffer_;
  LoopRecordEmitter& loop_records_;
  RowAccess& rows_;
  BlockCopies& copies_;
  llvm::PHINode* trail_ = nullptr;         ///< that of the CTA plus the number of the warp
  llvm::BasicBlock* cta_start_ = nullptr;  ///< of the loop over the CTAs of a row; the entry where there is none
  llvm::PHINode* cta_x_ = nullptr;         ///< null: no rows
  llvm::Value* cta_trail_ = nullptr;       ///< not where warps take turns
};

}  // namespace gridloom::exec
