// Calls of functions of the program, by name and by address.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class WarpValues;
class RecordBuffer;
class RecordGroups;

class DeviceCalls : Emitter {
 public:
  DeviceCalls(WarpBuilder& w, WarpValues& values, RecordBuffer& record_buffer, RecordGroups& record_groups)
      : Emitter(w), values_(values), record_buffer_(record_buffer), record_groups_(record_groups) {}

  void EmitCall(llvm::CallInst& call);
  void EmitIndirectCall(llvm::CallInst& call);

 private:
  llvm::Function* IndirectTarget(llvm::FunctionType* warp_type);

  WarpValues& values_;
  RecordBuffer& record_buffer_;
  RecordGroups& record_groups_;
};

}  // namespace gridloom::exec
