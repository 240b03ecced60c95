// Emits the warp form of one SPMD function. Internal to the vectoriser: vectorizer.cpp drives it. What it has:
//
//   WarpSource, WarpBuilder, WarpValues    what is known of the function; where code goes and for which lanes; values
//   HelperCalls, DeviceCalls               calls of the runtime, and of functions of the program
//   PlainEmitter, MarkerEmitter            plain instructions, and markers, most of which have an emitter of their own
//   MemoryEmitter, AtomicEmitter           accesses; below MemoryEmitter one class for each form of access
//   RecordEmitter                          records of accesses and of the path; below it buffer, groups and loops
//   ControlEmitter                         blocks and branches; below it frame, arrivals, arms, loops lane by lane,
//                                          barriers, meetings and the dispatcher
//
// Each has what it needs by reference and knows nothing of those that use it.
#pragma once

#include <memory>

#include "sim/exec/compiler/warp_module.h"

namespace gridloom::exec {

class WarpFunction {
 public:
  WarpFunction(WarpModule& module, llvm::Function& source, bool is_kernel);
  ~WarpFunction();
  WarpFunction(const WarpFunction&) = delete;
  WarpFunction& operator=(const WarpFunction&) = delete;

  /// The warp form to fill, before Emit.
  void SetTarget(llvm::Function& target);
  void Emit();
  bool needs_yield() const;

 private:
  struct Emitters;
  std::unique_ptr<Emitters> emitters_;
};

}  // namespace gridloom::exec
