// The markers that memcheck adds.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class HelperCalls;
class WarpValues;

class MemcheckEmitter : Emitter {
 public:
  MemcheckEmitter(WarpBuilder& w, HelperCalls& calls, WarpValues& values)
      : Emitter(w), calls_(calls), values_(values) {}

  bool EmitSyncCheck(const llvm::CallInst& call, const MarkerInfo& info);
  void EmitCheckReads(llvm::CallInst& call);
  void EmitLoadedBits(llvm::CallInst& call, const MarkerInfo& info);
  void EmitStoredBits(llvm::CallInst& call, const MarkerInfo& info);
  void EmitUseInvalid(llvm::CallInst& call, const MarkerInfo& info);

 private:
  Value* AskAboutReads(llvm::ArrayRef<std::uint32_t> group, llvm::ArrayRef<Value*> bases);
  llvm::Function* LoadedBitsFunction(llvm::Type* element);
  llvm::Function* StoredBitsFunction(llvm::Type* bits, unsigned count);
  llvm::Function* UseInvalidFunction();

  HelperCalls& calls_;
  WarpValues& values_;
};

}  // namespace gridloom::exec
