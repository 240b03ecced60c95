// Loads that are made together.
#pragma once

#include <vector>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_places.h"

namespace gridloom::exec {

class WarpValues;
class SlowAccess;
class RowAccess;
class IrregularAccess;
class AccessCalls;

/// Loads of neighbouring places, the lowest first.
using LoadGroup = std::vector<llvm::CallInst*>;

class LoadGroups : Emitter {
 public:
  LoadGroups(WarpBuilder& w, WarpValues& values, SlowAccess& slow, IrregularPlaces& places, RowAccess& rows,
             IrregularAccess& irregular, AccessCalls& access_calls)
      : Emitter(w),
        values_(values),
        slow_(slow),
        places_(places),
        rows_(rows),
        irregular_(irregular),
        access_calls_(access_calls) {}

  LoadGroup GroupFrom(llvm::CallInst& call, const Access& access);
  std::vector<LoadGroup> GroupsFrom(llvm::CallInst& call, const Access& access);
  bool MayGroup(const Access& access) const;
  void CallGroup(const LoadGroup& group, const Access& single);
  void EmitGroups(const std::vector<LoadGroup>& groups, const Access& single, const Window& window);

  void BeginBlock() { grouped_.clear(); }
  /// Whether `load` has been made together with an earlier one.
  bool IsDone(const llvm::CallInst& load) { return grouped_.erase(&load); }

 private:
  std::vector<llvm::CallInst*> LoadsAfter(const llvm::CallInst& call) const;
  bool MayJoin(const llvm::CallInst& load, const MarkerInfo& info, const Access& access) const;
  bool MakeReady(Value* value, const llvm::Instruction& at);
  void DefineGroup(const LoadGroup& group, llvm::ArrayRef<Value*> parts, bool first_is_current);

  WarpValues& values_;
  SlowAccess& slow_;
  IrregularPlaces& places_;
  RowAccess& rows_;
  IrregularAccess& irregular_;
  AccessCalls& access_calls_;
  llvm::DenseSet<const llvm::Instruction*> grouped_;  ///< loads that are already done
};

}  // namespace gridloom::exec
