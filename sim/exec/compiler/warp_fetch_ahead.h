// Fetches what lanes are about to go through (fetch_ahead.h).
#pragma once

#include <map>
#include <utility>

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class WarpValues;

class FetchAheadEmitter : Emitter {
 public:
  FetchAheadEmitter(WarpBuilder& w, WarpValues& values) : Emitter(w), values_(values) {}

  void FetchAhead(const llvm::CallInst& call, std::uint64_t array);

 private:
  llvm::AllocaInst* FetchedUntil(std::uint64_t array);
  std::pair<Value*, Value*> ExtentOf(Value* address);

  WarpValues& values_;
  std::map<std::uint64_t, llvm::AllocaInst*> until_;  ///< by array
};

}  // namespace gridloom::exec
