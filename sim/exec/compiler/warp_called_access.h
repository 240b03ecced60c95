// Which irregular accesses are made by call, and those calls.
#pragma once

#include <vector>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_places.h"

namespace gridloom::exec {

class HelperCalls;
class WarpValues;
class MemoryWindows;
class HalfAccess;
class SlowAccess;
class IrregularAccess;

class AccessCalls : Emitter {
 public:
  AccessCalls(WarpBuilder& w, HelperCalls& calls, WarpValues& values, MemoryWindows& windows, HalfAccess& halves,
              SlowAccess& slow, IrregularPlaces& places, IrregularAccess& irregular)
      : Emitter(w),
        calls_(calls),
        values_(values),
        windows_(windows),
        halves_(halves),
        slow_(slow),
        places_(places),
        irregular_(irregular) {}

  void PlanAccesses();
  bool ByCall(const llvm::CallInst& call) const;
  std::vector<Value*> CallLoad(const Irregular& place, const Access& whole, const Access& row,
                               llvm::ArrayRef<Value*> lines);
  void CallStore(const Irregular& place, const Access& access, const std::vector<Value*>& values);

 private:
  bool IsIrregular(const llvm::CallInst& call, const MarkerInfo& info);
  Irregular PassedAs(const Irregular& at);
  llvm::Function* AccessFunction(const char* what, const Irregular& at, const Access& access, llvm::Type* result,
                                 llvm::ArrayRef<llvm::Type*> more, bool& made);
  Irregular PlaceIn(llvm::Function* function, const Irregular& at);
  llvm::SmallVector<Value*, 8> AccessArguments(const Irregular& at, const Access& access);
  Value* HostAddresses(const Irregular& at, const Access& access, const Window& window);
  void NoteAccessLine(Value* line);
  void EmitLoadFunction(llvm::Function* function, const Irregular& passed, Access whole, Access row, unsigned lines);
  void EmitStoreFunction(llvm::Function* function, const Irregular& passed, Access access);

  HelperCalls& calls_;
  WarpValues& values_;
  MemoryWindows& windows_;
  HalfAccess& halves_;
  SlowAccess& slow_;
  IrregularPlaces& places_;
  IrregularAccess& irregular_;
  llvm::DenseSet<const llvm::CallInst*> in_line_;  ///< irregular accesses that are never made by call
  bool has_many_ = false;                          ///< irregular accesses
};

}  // namespace gridloom::exec
