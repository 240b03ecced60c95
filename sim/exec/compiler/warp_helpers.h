// Calls out of generated code: of the runtime's helpers, and of functions of the module that stand beside the warp
// form.
#pragma once

#include <string>

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

/// A buffer for lanes, aligned as vectors are.
llvm::Value* AlignedAlloca(llvm::IRBuilder<>& b, llvm::Type* type);
/// Helper call inside an out-of-line function, with the warp, mask, line (unless there is another) and immediate it was
/// given.
void CallHelperFrom(llvm::IRBuilder<>& b, llvm::Function* function, Helper helper, llvm::ArrayRef<llvm::Value*> args,
                    llvm::Value* line = nullptr);

class HelperCalls : Emitter {
 public:
  explicit HelperCalls(WarpBuilder& w) : Emitter(w) {}

  bool SwitchesInLine() const;
  Value* CallRarely(llvm::Function* function, llvm::ArrayRef<Value*> arguments);  // warp_rare_call.cpp
  void CheckOrder(std::uint64_t among);
  /// Calls a runtime helper. Pointers in `args` are to 32-lane arrays.
  void CallHelper(Helper helper, Value* mask, Value* line, std::uint64_t imm, llvm::ArrayRef<Value*> args);
  llvm::Function* OutOfLine(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> more,
                            llvm::Type* addresses = nullptr);
  void EmitRingSwitch();
};

}  // namespace gridloom::exec
