// Conditions of which a scalar test can tell that they hold for all lanes, or for none: an index that counts along the
// lanes against a bound. Most warps of most kernels are inside of their bounds with all lanes, and need no lane's
// compare.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class WarpValues;

class WholeConditions : Emitter {
 public:
  WholeConditions(WarpBuilder& w, WarpValues& values) : Emitter(w), values_(values) {}

  /// i1 that is true only if `condition` (an i1 of each lane) is `wanted` in every lane, on or off; null where no few
  /// scalar compares tell.
  Value* HoldsForAll(Value* condition, bool wanted);

 private:
  Value* HoldsForAll(Value* condition, bool wanted, unsigned depth);
  Value* CompareHoldsForAll(const llvm::ICmpInst& compare, bool wanted);

  WarpValues& values_;
};

}  // namespace gridloom::exec
