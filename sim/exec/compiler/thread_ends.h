// Which calls some threads may not come back from, because of an `exit` in the callee or in what it calls.
#pragma once

#include <llvm/ADT/DenseSet.h>

#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

class ThreadEnds {
 public:
  ThreadEnds(SpmdModule& spmd, const AddressTaken& address_taken);
  bool MayEndIn(const llvm::CallInst& call) const;

 private:
  const SpmdModule& spmd_;
  llvm::DenseSet<const llvm::Function*> functions_;  ///< in which threads may end
  bool indirect_ = false;                            ///< one of them can be called through a pointer
};

}  // namespace gridloom::exec
